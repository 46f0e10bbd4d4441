#include "house/source_tree.h"

#include <algorithm>
#include <fstream>
#include <regex>

#include "support/paths.h"

namespace levin::test {

namespace {

const std::vector<std::string> kFolders = {"emulator", "core",        "kernels", "autograd", "nn",    "optim", "data",
                                           "interop",  "distributed", "trainer", "examples", "tests", "bench"};
const std::vector<std::string> kExtensions = {".h", ".cpp", ".cu", ".cuh"};

SourceFile read_file(const std::filesystem::path& path, const std::filesystem::path& root) {
  SourceFile file{std::filesystem::relative(path, root), {}};
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) file.lines.push_back(line);
  return file;
}

}  // namespace

std::vector<SourceFile> read_sources(const std::vector<std::string>& folders) {
  std::vector<SourceFile> files;
  for (const auto& folder : folders.empty() ? kFolders : folders) {
    const auto dir = source_dir() / folder;
    if (!std::filesystem::exists(dir)) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir)) {
      const bool source = std::ranges::find(kExtensions, entry.path().extension().string()) != kExtensions.end();
      if (source) files.push_back(read_file(entry.path(), source_dir()));
    }
  }
  return files;
}

std::string included_path(const std::string& line) {
  static const std::regex include(R"re(^\s*#\s*include\s*[<"]([^>"]+)[>"])re");
  std::smatch match;
  return std::regex_search(line, match, include) ? match[1].str() : std::string();
}

}  // namespace levin::test
