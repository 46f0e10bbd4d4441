#pragma once
// Folders that vanish with the test, and compressed text.

#include <filesystem>
#include <string>

namespace levin::test {

/// An empty folder that vanishes with the test.
struct TempDir {
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::filesystem::path path;
};

/// `text` as a gzip file.
std::string gzip(const std::string& text);

}  // namespace levin::test
