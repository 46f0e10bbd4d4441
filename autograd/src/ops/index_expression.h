#pragma once
// The parts of an index expression.

#include <levin/core/tensor.h>

#include "../errors.h"

#include <fmt/format.h>

namespace levin::ops {

/// Reads indices without tensors and booleans; the result is a view.
Tensor view_at(const Tensor& x, std::span<const Index> indices);

[[noreturn]] inline void index_out_of_range(const char* op, int64_t i, int64_t axis, int64_t size) {
  const std::string remedy = size == 0 ? "it is empty" : fmt::format("use {} to {}", -size, size - 1);
  fail<IndexError>("[{}] index {} is out of range for axis {} of size {}: {}.", op, i, axis, size, remedy);
}

}  // namespace levin::ops
