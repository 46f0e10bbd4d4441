#include "house/source_tree.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "support/paths.h"
#include "support/text/pattern.h"

namespace levin::test {

namespace {

const std::vector<std::string> kFolders = {"emulator", "core",    "kernels",     "autograd", "nn",
                                           "optim",    "data",    "interop",     "distributed", "trainer",
                                           "c_api",    "examples", "tests",      "bench"};
const std::vector<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh"};

SourceFile read_file(const std::filesystem::path& path, const std::filesystem::path& root) {
  SourceFile file{std::filesystem::relative(path, root), {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

}  // namespace

std::vector<SourceFile> read_sources(const std::vector<std::string>& folders) {
  return read_files(folders.empty() ? kFolders : folders, kExtensions);
}

std::vector<SourceFile> read_files(const std::vector<std::string>& folders,
                                   const std::vector<std::string>& extensions) {
  std::vector<SourceFile> files;
  for (const auto& folder : folders) {
    const auto dir = source_dir() / folder;
    if (std::filesystem::is_regular_file(dir)) files.push_back(read_file(dir, source_dir()));
    if (!std::filesystem::is_directory(dir)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
      const bool wanted = std::ranges::find(extensions, entry.path().extension().string()) != extensions.end();
      if (wanted && entry.is_regular_file()) files.push_back(read_file(entry.path(), source_dir()));
    }
  }
  return files;
}

bool holds_word(const std::string& line, const std::string& word) {
  const auto letter = [&](std::size_t i) {
    return i < line.size() && std::isalnum(static_cast<unsigned char>(line[i])) != 0;
  };
  for (auto at = line.find(word); at != std::string::npos; at = line.find(word, at + 1)) {
    if (!letter(at - 1) && !letter(at + word.size())) return true;
  }
  return false;
}

std::string included_path(const std::string& line) {
  static const Pattern include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  // Most lines do not include anything, and the first character shows it faster than the expression does.
  const auto first = line.find_first_not_of(" \t\v\f\r\n");
  if (first == std::string::npos || line[first] != '#') return {};
  const auto match = include.find(line);
  return match ? match->at(1) : std::string();
}

}  // namespace levin::test
