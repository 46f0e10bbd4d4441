// Tensors from numbers alone. Sums and products are rounded separately, as on the CPU, so that the bits agree.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/elementwise/element.cuh"

#include <levin/kernels/copy.h>
#include <levin/kernels/creation.h>

namespace levin::kernels::cuda {

void copy(const CopyArgs& a, Stream& stream);
void fill(const FillArgs& a, Stream& stream);
void arange(const RangeArgs& a, Stream& stream);
void linspace(const LinspaceArgs& a, Stream& stream);

namespace creation {

/// start + i * step
__device__ inline double step_from(double start, std::int64_t i, double step) {
  return __dadd_rn(start, __dmul_rn(static_cast<double>(i), step));
}

struct IntegerRange {
  std::int64_t start, step;
  __device__ std::int64_t operator()(std::int64_t i) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                     static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step));
  }
};
struct Range {
  double start, step;
  __device__ double operator()(std::int64_t i) const { return step_from(start, i, step); }
};
/// The second half counts back from the end.
struct Linspace {
  double start, end, step;
  std::int64_t n;
  __device__ double operator()(std::int64_t i) const {
    return i < (n + 1) / 2 ? step_from(start, i, step) : step_from(end, n - 1 - i, -step);
  }
};

/// out (n)
template <class T, class F>
__global__ void __launch_bounds__(256) generate(T* out, std::int64_t n, F f) {
  for (std::int64_t i = global_thread(); i < n; i += grid_threads()) out[i] = elementwise::element_cast<T>(f(i));
}

template <class F>
void run(const char* op, const TensorView& out, const F& f, const Stream& stream) {
  const std::int64_t n = out.numel();
  if (n == 0) return;
  dispatch_numeric(out.dtype, op, [&]<class T>() {
    using D = DeviceType<T>;
    launch(generate<D, F>, {.grid = blocks_for(n), .block = 256, .stream = stream}, static_cast<D*>(out.pointer), n, f);
  });
}

}  // namespace creation

void fill(const FillArgs& a, Stream& stream) { copy({a.out, a.value}, stream); }

void arange(const RangeArgs& a, Stream& stream) {
  if (is_integral(a.out.dtype)) {
    creation::run("arange", a.out, creation::IntegerRange{a.integer_start, a.integer_step}, stream);
  } else {
    creation::run("arange", a.out, creation::Range{a.start, a.step}, stream);
  }
}

void linspace(const LinspaceArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  const double step = n > 1 ? (a.end - a.start) / static_cast<double>(n - 1) : 0.0;
  creation::run("linspace", a.out, creation::Linspace{a.start, a.end, step, n}, stream);
}

}  // namespace levin::kernels::cuda
