#pragma once
// Files in memory, and numbers in them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace levin::data::detail {

/// A file's bytes, which live as long as the last copy of `keeper`.
struct FileBytes {
  std::span<std::byte> data;
  std::shared_ptr<void> keeper;
};

/// Reads the whole file. Throws IoError.
FileBytes read_bytes(const std::filesystem::path& path);
/// Maps it, privately: writes stay in this process. Throws IoError.
FileBytes map_bytes(const std::filesystem::path& path);

/// An unsigned number of T's width, little-endian; the caller has checked the bounds.
template <class T>
T little_endian(std::span<const std::byte> from, std::size_t at = 0) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(from[at + i]) << (8 * i);
  return static_cast<T>(value);
}

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff);
  }
}

}  // namespace levin::data::detail
