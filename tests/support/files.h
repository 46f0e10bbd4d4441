#pragma once
// Temporary folders and compressed text.

#include <filesystem>
#include <string>

namespace levin::test {

/// An empty folder that is removed with the object.
struct TempDir {
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  std::filesystem::path path;
};

/// Returns `text` compressed as a gzip file.
std::string gzip(const std::string& text);

}  // namespace levin::test
