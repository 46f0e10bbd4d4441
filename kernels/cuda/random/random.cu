// Random numbers as a function of seed, offset and index.

#include "kernels/cuda/elementwise/element.cuh"
#include "kernels/cuda/elementwise/math.cuh"
#include "kernels/cuda/random/words.cuh"

#include <levin/kernels/random.h>

#include <numbers>

namespace levin::kernels::cuda {

void uniform(const RandomArgs& a, Stream& stream);
void normal(const RandomArgs& a, Stream& stream);
void randint(const RandintArgs& a, Stream& stream);
void bernoulli(const BernoulliArgs& a, Stream& stream);

namespace random {

/// Number of elements of type T from one Philox block.
template <class T>
inline constexpr int kElements = std::is_same_v<T, double> ? 2 : 4;

/// Returns a number in [0, 1) from the first bits of a word, as many as T can hold.
template <class T>
__device__ inline float unit(std::uint32_t word) {
  constexpr int bits = std::is_same_v<T, __half> ? 11 : std::is_same_v<T, __nv_bfloat16> ? 8 : 24;
  return static_cast<float>(word >> (32 - bits)) * (1.0f / static_cast<float>(1u << bits));
}

template <class T>
__device__ inline T uniform_element(const Words& words, int i, ComputeType<T> low, ComputeType<T> width) {
  if constexpr (std::is_same_v<T, double>) {
    return __dadd_rn(low, __dmul_rn(uniform53(words[2 * i], words[2 * i + 1]), width));
  } else {
    return convert<T>(__fadd_rn(low, __fmul_rn(unit<T>(words[i]), width)));
  }
}

/// out (n)
template <class T>
__global__ void __launch_bounds__(256) uniform_blocks(T* out, std::int64_t n, PhiloxState state, ComputeType<T> low,
                                                      ComputeType<T> width, bool packed) {
  constexpr int count = kElements<T>;
  const GeneratorState begin = begin_of(state);
  for (std::int64_t b = global_thread(); b * count < n; b += grid_threads()) {
    const Words words = draw(begin, b);
    T values[count];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < count; ++i) values[i] = uniform_element<T>(words, i, low, width);
    store_some(out + b * count, values, n - b * count, packed);
  }
}

/// Turns two uniform numbers into two normal ones (Box & Muller 1958).
template <class C>
__device__ inline void box_muller(C u, C v, C mean, C deviation, C& x, C& y) {
  const C radius = math::sqrt(C(-2) * math::log(C(1) - u)) * deviation;
  const C angle = C(2.0 * std::numbers::pi) * v;
  x = math::fma(radius, math::cos(angle), mean);
  y = math::fma(radius, math::sin(angle), mean);
}

/// out (n); each pair of elements comes from a pair of uniform numbers.
template <class T>
__global__ void __launch_bounds__(256) normal_blocks(T* out, std::int64_t n, PhiloxState state, ComputeType<T> mean,
                                                     ComputeType<T> deviation, bool packed) {
  constexpr int count = kElements<T>;
  const GeneratorState begin = begin_of(state);
  for (std::int64_t b = global_thread(); b * count < n; b += grid_threads()) {
    const Words words = draw(begin, b);
    T values[count];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < count; i += 2) {
      ComputeType<T> x, y;
      if constexpr (std::is_same_v<T, double>) {
        box_muller(uniform53(words[0], words[1]), uniform53(words[2], words[3]), mean, deviation, x, y);
      } else {
        box_muller(uniform24(words[i]), uniform24(words[i + 1]), mean, deviation, x, y);
      }
      values[i] = convert<T>(x);
      values[i + 1] = convert<T>(y);
    }
    store_some(out + b * count, values, n - b * count, packed);
  }
}

/// out (n), two elements per Philox block
template <class T>
__global__ void __launch_bounds__(256)
    randint_blocks(T* out, std::int64_t n, PhiloxState state, std::int64_t low, std::uint64_t range, bool packed) {
  const GeneratorState begin = begin_of(state);
  for (std::int64_t b = global_thread(); b * 2 < n; b += grid_threads()) {
    const Words words = draw(begin, b);
    T values[2];
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t bits = (static_cast<std::uint64_t>(words[2 * i]) << 32) | words[2 * i + 1];
      const std::uint64_t drawn = static_cast<std::uint64_t>(low) + __umul64hi(bits, range);
      values[i] = elementwise::element_cast<T>(static_cast<std::int64_t>(drawn));
    }
    store_some(out + b * 2, values, n - b * 2, packed);
  }
}

/// out (n) and p (n), four elements per Philox block
template <class T>
__global__ void __launch_bounds__(256)
    bernoulli_blocks(T* out, const T* p, std::int64_t n, PhiloxState state, bool packed) {
  const GeneratorState begin = begin_of(state);
  for (std::int64_t b = global_thread(); b * 4 < n; b += grid_threads()) {
    const Words words = draw(begin, b);
    T values[4];
    load_some(values, p + b * 4, n - b * 4, packed);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const auto chance = convert<ComputeType<T>>(values[i]);
      values[i] = convert<T>(static_cast<ComputeType<T>>(uniform24(words[i])) < chance ? 1.0f : 0.0f);
    }
    store_some(out + b * 4, values, n - b * 4, packed);
  }
}

/// Calls f.operator()<T>() with the device type of the elements.
template <class F>
void dispatch(DType t, const char* op, F&& f) {
  dispatch_floating(t, op, [&]<class T>() { f.template operator()<DeviceType<T>>(); });
}

}  // namespace random

void uniform(const RandomArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  if (n == 0) return;
  random::dispatch(a.out.dtype, "uniform", [&]<class T>() {
    constexpr int count = random::kElements<T>;
    using C = ComputeType<T>;
    launch(random::uniform_blocks<T>, {.grid = blocks_for(ceil_div(n, count)), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), n, a.state, static_cast<C>(a.p0), static_cast<C>(a.p1 - a.p0),
           random::aligned<T>(count, {a.out.pointer}));
  });
}

void normal(const RandomArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  if (n == 0) return;
  random::dispatch(a.out.dtype, "normal", [&]<class T>() {
    constexpr int count = random::kElements<T>;
    using C = ComputeType<T>;
    launch(random::normal_blocks<T>, {.grid = blocks_for(ceil_div(n, count)), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), n, a.state, static_cast<C>(a.p0), static_cast<C>(a.p1),
           random::aligned<T>(count, {a.out.pointer}));
  });
}

void randint(const RandintArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  if (n == 0) return;
  const auto range = static_cast<std::uint64_t>(a.high) - static_cast<std::uint64_t>(a.low);
  dispatch_numeric(a.out.dtype, "randint", [&]<class T>() {
    using D = DeviceType<T>;
    launch(random::randint_blocks<D>, {.grid = blocks_for(ceil_div(n, 2)), .block = 256, .stream = stream},
           static_cast<D*>(a.out.pointer), n, a.state, a.low, range, random::aligned<D>(2, {a.out.pointer}));
  });
}

/// Probabilities outside of [0, 1], which the CPU refuses, are clamped and NaN counts as 0: a kernel cannot throw.
void bernoulli(const BernoulliArgs& a, Stream& stream) {
  const std::int64_t n = a.out.numel();
  if (n == 0) return;
  random::dispatch(a.out.dtype, "bernoulli", [&]<class T>() {
    launch(random::bernoulli_blocks<T>, {.grid = blocks_for(ceil_div(n, 4)), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), static_cast<const T*>(a.p.pointer), n, a.state,
           random::aligned<T>(4, {a.out.pointer, a.p.pointer}));
  });
}

}  // namespace levin::kernels::cuda
