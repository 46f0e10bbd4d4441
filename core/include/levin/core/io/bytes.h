#pragma once
// Files in memory, read or mapped, and little-endian numbers in them.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace levin::io {

/// The bytes of a file, which may be written without changing it; valid as long as a copy of `keeper` lives.
struct FileBytes {
  std::span<std::byte> data;     ///< the whole file
  std::shared_ptr<void> keeper;  ///< owns the memory
};

/// Reads the whole file. Throws IoError.
FileBytes read_bytes(const std::string& path);
/// Maps the file: its pages are read on first use and shared between processes, and written ones become private copies.
/// The file must not be shortened while it is mapped. Throws IoError.
FileBytes map_bytes(const std::string& path);

/// Reads an unsigned little-endian number of T's width; the caller has checked the bounds.
template <class T>
T little_endian(std::span<const std::byte> from, std::size_t at = 0) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<std::uint64_t>(from[at + i]) << (8 * i);
  return static_cast<T>(value);
}

/// Appends a number's bytes, the lowest first.
template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff);
  }
}

}  // namespace levin::io
