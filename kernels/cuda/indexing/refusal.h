#pragma once
// Throws errors with the messages of the CPU's kernels. Separate from the kernels because nvcc cannot compile fmt's
// headers.

#include <levin/core/shape.h>

namespace levin::kernels::cuda {

/// Throws IndexError for element `at` of an index of these sizes.
[[noreturn]] void refuse_index(const char* op, std::int64_t value, const Shape& sizes, std::int64_t at,
                               std::int64_t size);
/// Throws IndexError for label `at`.
[[noreturn]] void refuse_label(const char* op, std::int64_t value, std::int64_t at, std::int64_t classes,
                               std::int64_t ignored);

}  // namespace levin::kernels::cuda
