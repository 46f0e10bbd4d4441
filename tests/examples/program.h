#pragma once
// Runs a sample program as a user does.

#include <levin/core/io.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
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

/// Runs the program in the folder until it ends.
inline Ended run_program(const TempDir& dir, const std::string& program, const std::string& arguments) {
  const std::string command = "cd " + dir.path.string() + " && " + (binary_dir() / "bin" / program).string() + " " +
                              arguments + " >out 2>err";
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
