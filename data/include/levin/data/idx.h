#pragma once
// The IDX format of the MNIST files: two zero bytes, a type byte, the number of dimensions, the sizes as big-endian
// 32-bit numbers, then the elements, big-endian, row-major.

#include <levin/core/tensor.h>

#include <string>

namespace levin::data {

/// Reads a file, plain or gzip (told apart by its first bytes). The tensor has the file's type: uint8, int8, int16,
/// int32, f32 or f64. Throws IoError for a missing file, a wrong magic number, and too few or too many bytes.
Tensor read_idx(const std::string& path);

}  // namespace levin::data
