// Loss scaling: unscaling with a check for infinities, and the update of the scale. Nothing returns to the host.

#include "kernels/cuda/elementwise/math.cuh"
#include "kernels/cuda/optim/chunks.cuh"

#include <levin/kernels/amp.h>

#include <limits>

namespace levin::kernels::cuda {

void amp_unscale(const UnscaleArgs& a, Stream& stream);
void amp_update_scale(const UpdateScaleArgs& a, Stream& stream);

namespace optim {

struct Gradient {
  void* values;
  std::int64_t numel;
  bool packed;
};
inline constexpr int kGradients = 120;

/// Sets found_inf to 1 by an exchange, which several blocks may repeat; no sum of floats depends on their order.
template <class T>
__global__ void __launch_bounds__(kThreads)
    unscale(const __grid_constant__ List<Gradient, kGradients> list, const float* scale, float* found_inf) {
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  using C = ComputeType<T>;
  const int index = list.find(blockIdx.x);
  const Gradient& g = list.members[index];
  const std::int64_t begin = list.begin(index, blockIdx.x);
  const int size = chunk_size(g.numel - begin);
  const C factor = static_cast<C>(static_cast<float>(1.0 / static_cast<double>(*scale)));
  bool finite = true;
  for (int i = static_cast<int>(threadIdx.x) * width; i < size; i += kThreads * width) {
    C values[width];
    load<T>(values, g.values, begin + i, size - i, g.packed);
    LEVIN_PRAGMA_UNROLL
    for (int j = 0; j < width; ++j) {
      const C after = convert<C>(convert<T>(values[j] * factor));
      // 0 times a finite number is 0, 0 times an infinity or NaN is NaN.
      finite = finite && values[j] * C(0) + after * C(0) == C(0);
      values[j] = after;
    }
    store<T>(values, g.values, begin + i, size - i, g.packed);
  }
  if (__syncthreads_or(!finite) != 0 && threadIdx.x == 0) atomicExch(found_inf, 1.0f);
}

/// Runs in a single thread.
__global__ void update_scale(UpdateScaleArgs a) {
  if (threadIdx.x != 0) return;
  if (*a.found_inf != 0.0f) {
    const float less = *a.scale * a.backoff;
    *a.scale = less > a.min_scale ? less : a.min_scale;
    *a.tracker = 0.0f;
    *a.skips += 1.0f;
    return;
  }
  *a.skips = 0.0f;
  *a.tracker += 1.0f;
  if (*a.tracker < static_cast<float>(a.growth_interval)) return;
  const float grown = *a.scale * a.growth;
  if (math::fabs(grown) <= std::numeric_limits<float>::max()) *a.scale = grown;
  *a.tracker = 0.0f;
}

/// Unscales all gradients of one type, as many per launch as a list holds.
template <class T>
void run_unscale(DType dtype, const UnscaleArgs& a, const Stream& stream) {
  List<Gradient, kGradients> list;
  const auto flush = [&] {
    launch(unscale<T>, {.grid = list.blocks(), .block = kThreads, .stream = stream}, list, a.scale, a.found_inf);
    list.clear();
  };
  for (const AmpTensor& t : a.tensors) {
    if (t.dtype != dtype || t.numel == 0) continue;
    list.add({t.values, t.numel, aligned({t.values})}, t.numel);
    if (list.full()) flush();
  }
  flush();
}

}  // namespace optim

void amp_unscale(const UnscaleArgs& a, Stream& stream) {
  optim::for_each_dtype("amp_unscale", a.tensors,
                        [&]<class T>(DType dtype) { optim::run_unscale<T>(dtype, a, stream); });
}

void amp_update_scale(const UpdateScaleArgs& a, Stream& stream) {
  launch(optim::update_scale, {.grid = 1, .block = 32, .stream = stream}, a);
}

}  // namespace levin::kernels::cuda
