#pragma once
// The SIMD functions of softmax, chosen at run time.

#include <cstdint>

namespace levin::kernels::cpu {

/// Number of neighbours that are computed together along an axis that is not the last.
inline constexpr std::int64_t kSoftmaxColumns = 64;

/// Rows are contiguous; columns are `width` (at most kSoftmaxColumns) neighbours, whose n elements lie `step` apart.
template <class T>
struct SoftmaxLines {
  using Row = void (*)(const T* x, T* out, std::int64_t n);
  using Columns = void (*)(const T* x, T* out, std::int64_t n, std::int64_t step, std::int64_t width);
  using BackwardRow = void (*)(const T* g, const T* y, T* dx, std::int64_t n);
  using BackwardColumns = void (*)(const T* g, const T* y, T* dx, std::int64_t n, std::int64_t step,
                                   std::int64_t width);

  Row softmax_row, log_softmax_row;
  Columns softmax_columns, log_softmax_columns;
  BackwardRow softmax_backward_row, log_softmax_backward_row;
  BackwardColumns softmax_backward_columns, log_softmax_backward_columns;
};

const SoftmaxLines<float>& softmax_lines(float);
const SoftmaxLines<double>& softmax_lines(double);

}  // namespace levin::kernels::cpu
