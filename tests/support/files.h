#pragma once
// Temporary folders, compressed text, and parts of files.

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

/// Returns what stands between the first `begin` and the next `end`; "" without the former.
std::string between(const std::string& text, const std::string& begin, const std::string& end);
/// Returns the first C++ program of a page of the source tree.
std::string program_of_page(const std::string& page);
/// Returns the lines of a file of the source tree that are marked as the program of a page.
std::string marked_program(const std::string& file);

}  // namespace levin::test
