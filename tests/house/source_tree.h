#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace levin::test {

/// One text file of the repository, read into lines.
struct SourceFile {
  std::filesystem::path path;  ///< relative to the root
  std::vector<std::string> lines;

  /// The module, which is the first folder of the path.
  std::string module() const { return path.begin()->string(); }
};

/// All C++ and CUDA files under the folders named, or under all folders of the house.
std::vector<SourceFile> read_sources(const std::vector<std::string>& folders = {});

/// Files with these extensions under the folders named. A folder may also be a single file of any extension.
std::vector<SourceFile> read_files(const std::vector<std::string>& folders, const std::vector<std::string>& extensions);

/// True if `line` holds `word` with no letter or digit beside it.
bool holds_word(const std::string& line, const std::string& word);

/// Returns the path of an `#include <...>` or `#include "..."` line, or an empty text for another line.
std::string included_path(const std::string& line);

}  // namespace levin::test
