// Dropout: the mask is generated on the fly and never stored.

#include "kernels/cuda/random/words.cuh"

#include <levin/kernels/random.h>

#include <algorithm>

namespace levin::kernels::cuda {

void dropout(const DropoutArgs& a, Stream& stream);

namespace random {

/// out (n) and x (n), four elements per Philox block; words below `limit` zero their element, the others scale it.
template <class T>
__global__ void __launch_bounds__(256) dropout_blocks(T* out, const T* x, std::int64_t n, PhiloxState state,
                                                      std::uint32_t limit, ComputeType<T> scale, bool packed) {
  const GeneratorState begin = begin_of(state);
  for (std::int64_t b = global_thread(); b * 4 < n; b += grid_threads()) {
    const Words words = draw(begin, b);
    T values[4];
    load_some(values, x + b * 4, n - b * 4, packed);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const bool dropped = (words[i] >> 8) < limit;
      values[i] = convert<T>(dropped ? ComputeType<T>(0) : convert<ComputeType<T>>(values[i]) * scale);
    }
    store_some(out + b * 4, values, n - b * 4, packed);
  }
}

}  // namespace random

void dropout(const DropoutArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  if (n == 0) return;
  // Decides u < p with integers: 24 random bits are compared with p scaled likewise.
  const auto limit = static_cast<std::uint32_t>(std::min(a.p * 0x1p24, 0x1p24));
  dispatch_floating(a.out.dtype, "dropout", [&]<class H>() {
    using T = DeviceType<H>;
    using C = ComputeType<T>;
    launch(random::dropout_blocks<T>, {.grid = blocks_for(ceil_div(n, 4)), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), static_cast<const T*>(a.x.pointer), n, a.state, limit,
           a.p < 1.0 ? static_cast<C>(1.0 / (1.0 - a.p)) : C(0), random::aligned<T>(4, {a.out.pointer, a.x.pointer}));
  });
}

}  // namespace levin::kernels::cuda
