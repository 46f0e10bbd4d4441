#pragma once
// Geometry of an elementwise operation: the host's plan for its operands, and the part of it that a kernel receives.

#include "kernels/cuda/indexing/divide.cuh"

#include <levin/core/tensor_view.h>
#include <levin/kernels/elementwise.h>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace levin::kernels::cuda::elementwise {

inline constexpr int kMostOperands = 4;  ///< the result and three inputs

/// A kernel argument. Operand 0 is the result. Axes are traversed in steps of one element, or of one pack along the
/// last axis.
struct Operands {
  int dims = 1;
  std::uint32_t steps = 0;  ///< total number of packs or elements
  std::uint32_t elements = 0;
  DType compute = DType::f32;  ///< the type to which integers wrap
  Divider sizes[kMaxDims];
  std::int64_t strides[kMostOperands][kMaxDims] = {};  ///< of a step, in elements
  void* pointers[kMostOperands] = {};                  ///< null for a number
  std::uint64_t numbers[kMostOperands] = {};           ///< bits of the number
  DType dtypes[kMostOperands] = {};
};

/// Computes the offsets of the first `Count` operands at a step, in elements.
template <int Count>
__device__ inline void find_offsets(const Operands& o, std::uint32_t step, std::int64_t (&at)[Count]) {
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < Count; ++k) at[k] = 0;
  for (int d = o.dims - 1; d > 0; --d) {
    const std::uint32_t next = o.sizes[d].quotient(step), index = step - next * o.sizes[d].divisor;
    LEVIN_PRAGMA_UNROLL
    for (int k = 0; k < Count; ++k) at[k] += static_cast<std::int64_t>(index) * o.strides[k][d];
    step = next;
  }
  LEVIN_PRAGMA_UNROLL
  for (int k = 0; k < Count; ++k) at[k] += static_cast<std::int64_t>(step) * o.strides[k][0];
}

/// All operands over the result's axes: axes of size 1 are dropped, the others are ordered as the result lies in
/// memory, and neighbours are merged if every operand is evenly strided over both.
class Plan {
 public:
  Plan(const TensorView& out, std::initializer_list<const TensorView*> inputs);

  std::int64_t numel() const;
  int dims() const { return dims_; }
  std::int64_t size(int axis) const { return sizes_[axis]; }
  std::int64_t stride(int operand, int axis) const { return strides_[operand][axis]; }
  void* pointer(int operand) const { return pointers_[operand]; }
  /// True if every operand that is not a number has the dtype given for it.
  bool has_dtypes(std::span<const DType> dtypes) const;
  /// True if the last axis can be traversed in packs: it is contiguous or constant for every operand, and aligned.
  bool packable(int width) const;
  /// Returns the argument for a kernel that takes `width` elements per step and numbers as `values`, wrapped to
  /// `compute` first.
  Operands operands(int width, std::span<const DType> values, DType compute) const;

  /// Calls f(plan) for parts of fewer than 2^31 elements each, so that kernels count in 32 bits.
  template <class F>
  void for_each_part(F&& f) const {
    if (numel() <= kMostElements) return f(*this);
    const std::int64_t half = sizes_[0] > 64 ? sizes_[0] / 32 * 16 : sizes_[0] / 2;
    part(0, half).for_each_part(f);
    part(half, sizes_[0] - half).for_each_part(f);
  }

 private:
  static constexpr std::int64_t kMostElements = (std::int64_t{1} << 31) - 1;

  void add(const TensorView& view, const Shape& sizes);
  void simplify(const Shape& sizes);
  void swap_axes(int a, int b);
  Plan part(std::int64_t first, std::int64_t count) const;

  int dims_ = 0, operands_ = 0;
  std::int64_t sizes_[kMaxDims] = {};
  std::int64_t strides_[kMostOperands][kMaxDims] = {};
  const TensorView* views_[kMostOperands] = {};
  std::byte* pointers_[kMostOperands] = {};
};

/// Returns the same number in another type.
TensorView number_as(const TensorView& number, DType dtype);

[[noreturn]] void refuse_type(const char* op, DType compute);
/// Throws ValueError if an integer tensor is divided by the number 0. A divisor that is a tensor is not checked, since
/// its values are on the device.
void refuse_zero(const char* op, const BinaryArgs& a);

/// Returns the parameters, clamped for integers to the range of out's type.
std::pair<double, double> bounded_parameters(const UnaryArgs& a);

}  // namespace levin::kernels::cuda::elementwise
