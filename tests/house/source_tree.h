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

/// All C++ files (.h, .cpp) under the folders named, or under all folders of the house.
std::vector<SourceFile> read_sources(const std::vector<std::string>& folders = {});

/// The path that an `#include <...>` or `#include "..."` line names, or nothing.
std::string included_path(const std::string& line);

}  // namespace levin::test
