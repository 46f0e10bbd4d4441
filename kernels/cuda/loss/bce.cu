// Binary cross-entropy with logits, and its gradient.
#include "kernels/cuda/loss/sums.cuh"
#include "kernels/cuda/reduce/dispatch.h"

namespace levin::kernels::cuda {

__device__ inline float soft_part(float x) { return log1pf(expf(-fabsf(x))); }
__device__ inline double soft_part(double x) { return ::log1p(::exp(-::fabs(x))); }
__device__ inline float exp_of_minus(float x) { return expf(-x); }
__device__ inline double exp_of_minus(double x) { return ::exp(-x); }

/// Computes 1 / (1 + exp(-x)) with the exponential that cannot overflow.
template <class T>
__device__ inline T logistic(T x) {
  const T e = exp_of_minus(x < T(0) ? -x : x);
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

/// Targets: a tensor, or one number for all elements.
template <class T>
struct BceTarget {
  using C = ComputeType<T>;
  const T* values;
  C number;
  explicit BceTarget(const TensorView& v) : values(elements<const T>(v)), number(v.is_number() ? *v.data<C>() : C(0)) {}
  __device__ C at(std::int64_t i) const { return values ? convert<C>(values[i]) : number; }
};

/// out is null unless every loss is needed.
template <class T>
__global__ void bce_forward(const T* x, BceTarget<T> target, T* out, std::int64_t n, LossSums* partial) {
  using C = ComputeType<T>;
  LossSums own;
  for (std::int64_t i = global_thread(); i < n; i += grid_threads()) {
    const C v = convert<C>(x[i]), t = target.at(i);
    // max(v, 0) - v t as one product: for an infinite v its two terms would cancel to NaN.
    const C loss = (v > C(0) ? v * (C(1) - t) : -v * t) + soft_part(v);
    if (out) out[i] = convert<T>(loss);
    own.loss += static_cast<double>(loss);
    own.weight += 1.0;
  }
  leave_sums(own, partial);
}

/// g has n elements, or one if `single`.
template <class T>
__global__ void bce_gradient(const T* x, BceTarget<T> target, const T* g, bool single, ComputeType<T> scale, T* dx,
                             std::int64_t n) {
  using C = ComputeType<T>;
  for (std::int64_t i = global_thread(); i < n; i += grid_threads()) {
    const C slope = logistic(convert<C>(x[i])) - target.at(i);
    dx[i] = convert<T>(scale * convert<C>(g[single ? 0 : i]) * slope);
  }
}

namespace {

template <class T>
void forward(const BceArgs& a, Stream& stream) {
  const std::int64_t n = a.x.numel();
  const bool none = a.reduction == LossReduction::none;
  const unsigned blocks = n == 0 ? 0 : blocks_for(n, kLossThreads);
  Scratch<LossSums> partial(stream, blocks);
  launch(bce_forward<T>, {.grid = blocks, .block = kLossThreads, .stream = stream}, elements<const T>(a.x),
         BceTarget<T>(a.target), none ? elements<T>(a.out) : nullptr, n, partial.get());
  if (none) return;
  launch(finish_loss<T>, {.block = kLossThreads, .stream = stream}, partial.get(), static_cast<int>(blocks), nullptr,
         elements<T>(a.out), a.reduction);
}

template <class T>
void backward(const BceArgs& a, Stream& stream) {
  const std::int64_t n = a.x.numel();
  if (n == 0) return;
  using C = ComputeType<T>;
  const C scale = a.reduction == LossReduction::mean ? static_cast<C>(1.0 / static_cast<double>(n)) : C(1);
  launch(bce_gradient<T>, {.grid = blocks_for(n, kLossThreads), .block = kLossThreads, .stream = stream},
         elements<const T>(a.x), BceTarget<T>(a.target), elements<const T>(a.g), a.reduction != LossReduction::none,
         scale, elements<T>(a.dx), n);
}

}  // namespace

void bce_with_logits(const BceArgs& a, Stream& stream) {
  dispatch_floats(a.x.dtype, "bce_with_logits", [&]<class T>() { forward<T>(a, stream); });
}

void bce_with_logits_backward(const BceArgs& a, Stream& stream) {
  dispatch_floats(a.x.dtype, "bce_with_logits_backward", [&]<class T>() { backward<T>(a, stream); });
}

}  // namespace levin::kernels::cuda
