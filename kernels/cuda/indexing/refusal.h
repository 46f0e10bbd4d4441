#pragma once
// The words of the CPU's kernels. Apart from the kernels because nvcc does not take fmt's headers.

#include <levin/core/shape.h>

namespace levin::kernels::cuda {

/// IndexError for element number `at` of an index of these sizes.
[[noreturn]] void refuse_index(const char* op, std::int64_t value, const Shape& sizes, std::int64_t at,
                               std::int64_t size);
/// IndexError for label number `at`.
[[noreturn]] void refuse_label(const char* op, std::int64_t value, std::int64_t at, std::int64_t classes,
                               std::int64_t ignored);

}  // namespace levin::kernels::cuda
