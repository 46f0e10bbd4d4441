#pragma once
// Indices out of range are found on the device and told on the host.

#include <levin/core/tensor_view.h>

namespace levin::kernels::cuda {

/// Throws IndexError, in the words of the CPU's kernels, for the first of the index's values outside [0, size). This
/// waits for the stream. While the stream is captured into a graph nothing may wait and nothing is checked; so kernels
/// must do without such values themselves: they read zeros there and write nothing.
void check_index(const TensorView& index, int64_t size, const char* op, Stream& stream);

/// The exception for element number `at` of an index of these sizes.
[[noreturn]] void refuse_index(const char* op, int64_t value, const Shape& sizes, int64_t at, int64_t size);

}  // namespace levin::kernels::cuda
