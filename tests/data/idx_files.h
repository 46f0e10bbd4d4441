#pragma once
// Small IDX files.

#include "support/files.h"

#include <cstdint>
#include <string>
#include <vector>

namespace levin::test {

inline void put_u32(std::string& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>((v >> shift) & 0xff);
}

/// Returns the header of an IDX file: type code and sizes.
inline std::string idx_header(int code, const std::vector<std::uint32_t>& sizes) {
  std::string out{'\0', '\0', static_cast<char>(code), static_cast<char>(sizes.size())};
  for (const std::uint32_t s : sizes) put_u32(out, s);
  return out;
}

/// Returns bytes 0, 1, 2, ... that wrap after 255.
inline std::string counting(std::size_t n) {
  std::string out(n, '\0');
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<char>(i % 256);
  return out;
}

}  // namespace levin::test
