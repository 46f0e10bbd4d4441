#pragma once
// How all elementwise kernels run: one driver, which knows shapes, strides, types and threads, calls a row function,
// which knows one operation on contiguous memory of one type.

#include <levin/core/tensor_view.h>

#include <initializer_list>

namespace levin::kernels::cpu {

/// A range of elements. An input with step 0 is one value, repeated over 64 aligned bytes.
struct Row {
  void* out;
  const void* in[3];
  int64_t step[3];
  int64_t n;
  double p0, p1;
  int64_t ahead;  ///< bytes from those in use to those that are prefetched
};
using RowFn = void (*)(const Row&);

/// One operation's rows by type; null if it has none. f16 and bf16 use the row of f32.
struct Rows {
  RowFn f32 = nullptr, f64 = nullptr;
  RowFn i64 = nullptr, i32 = nullptr, i16 = nullptr, i8 = nullptr, u8 = nullptr, boolean = nullptr;
};

/// Returns the row function for type `compute`: from `other` for integers and bool, else from `floating`.
RowFn row_for(const char* op, const Rows& floating, const Rows& other, DType compute);

/// Returns the type in which values of type `t` are computed: f32 for the 16-bit floats.
constexpr DType compute_type(DType t) { return t == DType::f16 || t == DType::bf16 ? DType::f32 : t; }

struct RowInput {
  const TensorView* view;
  DType compute;  ///< the type that the row function reads
};

/// Runs `row` over all of out. `out_compute` is the type that the row function writes.
void run_rows(const TensorView& out, DType out_compute, std::initializer_list<RowInput> inputs, RowFn row,
              double p0 = 0, double p1 = 0);

/// Converts n elements; the strides are in bytes.
using ConvertFn = void (*)(void* out, int64_t out_stride, const void* in, int64_t in_stride, int64_t n);
ConvertFn convert_fn(DType to, DType from);

/// Converts contiguous rows between f32 and a 16-bit float with vectors; null for other pairs.
using ContiguousConvertFn = void (*)(void* out, const void* in, int64_t n);
ContiguousConvertFn simd_convert_fn(DType to, DType from);

/// Number of elements of one chunk of parallel work.
inline constexpr int64_t kGrain = 32768;

}  // namespace levin::kernels::cpu
