#pragma once
// The .npy format: magic, version, header text, elements.

#include "bytes.h"

#include <levin/core/tensor.h>

namespace levin::data::detail {

/// The array in these bytes; no copy where type, order and alignment allow it. `name` heads the error.
Tensor parse_npy(const FileBytes& file, const std::string& name);

/// Everything before the elements. Throws DTypeError.
std::string npy_header(const Tensor& tensor);

}  // namespace levin::data::detail
