#pragma once
// The JSON header of a safetensors file, read strictly.

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
  std::uint64_t begin = 0, end = 0;  ///< in the data behind the header
};

struct Header {
  std::vector<TensorEntry> entries;
  std::map<std::string, std::string> metadata;
};

/// Throws IoError that names `what`. Memory stays within a small multiple of the text.
Header parse_header(std::string_view text, const std::string& what);
std::string write_header(const Header& header);

}  // namespace levin::interop
