#pragma once
// The .npy format: magic, version, header text, elements.

#include <levin/core/io/bytes.h>
#include <levin/core/tensor.h>

namespace levin::data::detail {

/// Returns the array in these bytes, without a copy if type, order and alignment allow it. Errors begin with `name`.
Tensor parse_npy(const io::FileBytes& file, const std::string& name);

/// Returns the bytes before the elements. Throws DTypeError.
std::string npy_header(const Tensor& tensor);

}  // namespace levin::data::detail
