#pragma once
// The JSON header of a safetensors file, parsed strictly.

#include <levin/core/tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace levin::interop {

struct TensorEntry {
  std::string name;
  DType dtype = DType::f32;
  Shape sizes;
  std::uint64_t begin = 0, end = 0;  ///< byte offsets in the data after the header
};

struct Header {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Parses the header; throws IoError that names `what`. Memory use is at most a small multiple of the text.
Header parse_header(std::string_view text, const std::string& what);
std::string write_header(const Header& header);

}  // namespace levin::interop
