#pragma once
// Operands that are read element by element, with any layout: matrices of any strides here, the windows of a
// convolution in conv/windows.cuh. An operand gives a reader for each product of the batch, with
//   Line line(i)        the state of row i of A or column i of B
//   Step step(k), next(step)   the state of k, and of k + 1
//   at(line, step)      the element's address, or null where it is 0
// Both states are computed once and combined once per element.

#include "kernels/cuda/matmul/problem.cuh"

namespace levin::kernels::cuda {

/// The direction in which neighbouring threads run when a tile is copied; `vectors`: along the lines, 16 bytes per
/// thread.
enum class Access { along_k, along_lines, vectors };

template <class T>
struct StridedReader {
  using Line = const T*;
  using Step = std::int64_t;
  const T* data;
  std::int64_t line_stride, step_stride, lines;

  __device__ Line line(std::int64_t i) const { return i < lines ? data + i * line_stride : nullptr; }
  __device__ Step step(int k) const { return k * step_stride; }
  __device__ void next(Step& s) const { s += step_stride; }
  __device__ const T* at(Line l, Step s) const { return l ? l + s : nullptr; }
  /// True if the elements of a line are neighbours.
  __device__ bool contiguous() const { return step_stride == 1; }
};

template <class T, Access access>
struct StridedOperand {
  using Element = T;
  using Reader = StridedReader<T>;
  static constexpr Access kAccess = access;
  Operand<T> x;
  std::int64_t lines;

  __device__ Reader reader(std::int64_t batch) const { return {x.of(batch), x.line, x.step, lines}; }
};

/// Returns the best access for tiles copied element by element.
template <class T>
Access element_access(const Operand<T>& x) {
  return x.line == 1 && x.step != 1 ? Access::along_lines : Access::along_k;
}

}  // namespace levin::kernels::cuda
