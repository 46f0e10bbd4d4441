#pragma once
// Runs a sample program as a user does.

#include <levin/core/io.h>
#include <levin/data/mnist.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <sys/wait.h>

#include "support/files.h"
#include "support/paths.h"

namespace levin::test {

struct Ended {
  int status = -1;
  std::string out, err;

  /// Returns the value of KEY=VALUE in the last line, or an empty string.
  std::string result(const std::string& key) const {
    std::istringstream words(out.substr(std::min(out.size(), out.rfind("result: "))));
    for (std::string word; words >> word;)
      if (word.starts_with(key + "=")) return word.substr(key.size() + 1);
    return {};
  }
  /// Returns the value as a number. Throws std::invalid_argument if it is not one.
  double number(const std::string& key) const { return std::stod(result(key)); }
};

/// Returns a folder with the plain files of Fashion-MNIST. Unpacking them in each program would take a quarter of the
/// tests' time.
inline const std::filesystem::path& plain_fashion_mnist() {
  struct Files : TempDir {
    Files() {
      for (const char* name :
           {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"}) {
        const auto packed = std::filesystem::path(data::kFashionMnistDir) / (std::string(name) + ".gz");
        io::write_file(path / name, io::gunzip(io::read_file(packed), packed.string()));
      }
    }
  };
  static const Files files;
  return files.path;
}

/// Returns "--data FOLDER" for a program that reads Fashion-MNIST, unless the arguments name another folder or dataset.
inline std::string data_option(const std::string& program, const std::string& arguments) {
  constexpr const char* readers[] = {"ddp_by_hand",    "ddpm",   "deploy",   "detect", "gan", "mnist",
                                     "model_parallel", "resnet", "transfer", "vae",    "vit"};
  const bool reads = std::find(std::begin(readers), std::end(readers), program) != std::end(readers);
  return reads && arguments.find("--data") == std::string::npos ? "--data " + plain_fashion_mnist().string() : "";
}

/// Runs the program in the folder until it ends.
inline Ended run_program(const TempDir& dir, const std::string& program, const std::string& arguments) {
  const std::string command = "cd " + dir.path.string() + " && " + (binary_dir() / "bin" / program).string() + " " +
                              data_option(program, arguments) + " " + arguments + " >out 2>err";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, io::read_text(dir.path / "out"),
          io::read_text(dir.path / "err")};
}

/// Returns the non-empty cells of one column of metrics.csv.
inline std::vector<std::string> column(const std::filesystem::path& file, const std::string& name) {
  std::vector<std::string> out;
  std::istringstream in(io::read_text(file));
  std::ptrdiff_t wanted = -1;
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> cells(1);
    for (const char c : line) c == ',' ? cells.emplace_back() : cells.back() += std::string(1, c);
    if (wanted < 0) {
      wanted = std::find(cells.begin(), cells.end(), name) - cells.begin();
      continue;
    }
    const auto& cell = cells.at(static_cast<std::size_t>(wanted));
    if (!cell.empty()) out.push_back(cell);
  }
  return out;
}

}  // namespace levin::test
