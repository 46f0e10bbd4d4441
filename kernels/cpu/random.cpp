// Random numbers: one vector of Philox counters at a time.
#include "kernels/cpu/random.h"
#include "kernels/cpu/targets.h"
#include "kernels/src/table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/random.cpp"
#include <hwy/foreach_target.h>

#include "kernels/cpu/math-inl.h"

#include <levin/core/parallel.h>
#include <levin/kernels/random.h>

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

HWY_BEFORE_NAMESPACE();
namespace levin::kernels::cpu::HWY_NAMESPACE {

/// Computes the words of the blocks [first, first + blocks) of a stream; see philox() for the rounds.
void philox_words(std::uint64_t seed, std::uint64_t first, int64_t blocks, std::uint32_t* out) {
  int64_t done = 0;
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  // One block per 64-bit lane; its words are in the lanes' lower halves, which are all that MulEven reads.
  const Simd<std::uint64_t> d;
  const hn::Repartition<std::uint32_t, Simd<std::uint64_t>> words;
  const auto low = hn::Set(d, 0xffffffffu);
  const auto m0 = hn::BitCast(words, hn::Set(d, 0xD2511F53u)), m1 = hn::BitCast(words, hn::Set(d, 0xCD9E8D57u));
  for (; done + kLanes<std::uint64_t> <= blocks; done += kLanes<std::uint64_t>) {
    const auto counter = hn::Iota(d, first + static_cast<std::uint64_t>(done));
    auto c0 = hn::And(counter, low), c1 = hn::ShiftRight<32>(counter), c2 = hn::Zero(d), c3 = hn::Zero(d);
    auto k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
    HWY_UNROLL(1)  // unrolled, the keys of all rounds would occupy more registers than there are
    for (int round = 0; round < 10; ++round) {
      const auto p0 = hn::MulEven(hn::BitCast(words, c0), m0), p1 = hn::MulEven(hn::BitCast(words, c2), m1);
      c0 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p1), c1), hn::Set(d, k0));
      c1 = hn::And(p1, low);
      c2 = hn::Xor(hn::Xor(hn::ShiftRight<32>(p0), c3), hn::Set(d, k1));
      c3 = hn::And(p0, low);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const auto first_half = hn::Or(c0, hn::ShiftLeft<32>(c1)), second_half = hn::Or(c2, hn::ShiftLeft<32>(c3));
    hn::StoreInterleaved2(first_half, second_half, d, reinterpret_cast<std::uint64_t*>(out + 4 * done));
  }
#endif
  for (; done < blocks; ++done) {
    const auto block = philox(seed, first + static_cast<std::uint64_t>(done));
    std::copy(block.begin(), block.end(), out + 4 * done);
  }
}

/// Transforms pairs of uniform numbers (u, v) in place to pairs of normal ones (Box & Muller 1958).
template <class T>
void box_muller(T* u, T* v, int64_t n, double mean, double std) {
  const Simd<T> d;
  for (int64_t i = 0; i < n; i += kLanes<T>) {  // callers leave room for whole vectors
    const auto one_less = hn::Sub(constant(d, 1.0), hn::LoadU(d, u + i));  // in (0, 1]
    const auto radius = hn::Mul(hn::Sqrt(hn::Mul(constant(d, -2.0), hn::Log(d, one_less))), constant(d, std));
    const auto angle = hn::Mul(constant(d, 2.0 * std::numbers::pi), hn::LoadU(d, v + i));
    hn::StoreU(hn::MulAdd(radius, hn::Cos(d, angle), constant(d, mean)), d, u + i);
    hn::StoreU(hn::MulAdd(radius, hn::Sin(d, angle), constant(d, mean)), d, v + i);
  }
}
/// Words below `limit` set their element to zero, the others scale it.
void dropout_f32(const std::uint32_t* words, const float* x, float* out, int64_t n, std::uint32_t limit, float scale) {
  const Simd<float> d;
  const Simd<std::int32_t> di;  // 24 bits: signed comparison is exact
  const auto bound = hn::Set(di, static_cast<std::int32_t>(limit));
  int64_t i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) {
    const auto bits = hn::LoadU(Simd<std::uint32_t>(), words + i);
    const auto drawn = hn::BitCast(di, hn::ShiftRight<8>(bits));
    const auto dropped = hn::RebindMask(d, hn::Lt(drawn, bound));
    hn::StoreU(hn::IfThenZeroElse(dropped, hn::Mul(hn::LoadU(d, x + i), hn::Set(d, scale))), d, out + i);
  }
  for (; i < n; ++i) out[i] = (words[i] >> 8) < limit ? 0.0f : x[i] * scale;
}

void box_muller_f32(float* u, float* v, int64_t n, double mean, double std) { box_muller(u, v, n, mean, std); }
void box_muller_f64(double* u, double* v, int64_t n, double mean, double std) { box_muller(u, v, n, mean, std); }

}  // namespace levin::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace levin::kernels {

namespace cpu {

HWY_EXPORT(philox_words);
HWY_EXPORT(dropout_f32);
HWY_EXPORT(box_muller_f32);
HWY_EXPORT(box_muller_f64);

void random_words_of(std::uint64_t seed, std::uint64_t first, int64_t blocks, std::uint32_t* words) {
  HWY_DYNAMIC_DISPATCH(philox_words)(seed, first, blocks, words);
}

namespace {

constexpr int64_t kBatch = 1024;    // words drawn at a time
constexpr int64_t kChunk = 16384;   // words of a parallel task

/// Calls f(element, count, words) for ranges of elements that use `per` words each.
template <class F>
void for_each_batch(int64_t numel, int per, const PhiloxState& state, F&& f) {
  const GeneratorState now = state.now();
  const int64_t chunk = kChunk / per, batch = kBatch / per;
  parallel_for(0, numel, chunk, [&](int64_t begin, int64_t end) {
    alignas(64) std::uint32_t words[kBatch];
    for (int64_t i = begin; i < end; i += batch) {
      const int64_t count = std::min(batch, end - i);
      const auto first = now.offset + static_cast<std::uint64_t>(i * per / 4);
      HWY_DYNAMIC_DISPATCH(philox_words)(now.seed, first, (count * per + 3) / 4, words);
      f(i, count, words);
    }
  });
}

template <class T>
float uniform_of(std::uint32_t word) {
  constexpr int bits = std::is_same_v<T, Half> ? 11 : std::is_same_v<T, BFloat16> ? 8 : 24;
  return static_cast<float>(word >> (32 - bits)) * (1.0f / static_cast<float>(1u << bits));
}
inline double uniform_of_two(const std::uint32_t* words) { return uniform53(words[0], words[1]); }

void uniform(const RandomArgs& a, Stream&) {
  const double range = a.p1 - a.p0;
  dispatch_floating(a.out.dtype, "uniform", [&]<class T>() {
    T* out = static_cast<T*>(a.out.pointer);
    for_each_batch(a.out.numel(), random_words(dtype_of<T>), a.state,
                   [&](int64_t at, int64_t n, const std::uint32_t* w) {
                     if constexpr (std::is_same_v<T, double>) {
                       for (int64_t i = 0; i < n; ++i) out[at + i] = a.p0 + uniform_of_two(w + 2 * i) * range;
                     } else {
                       const float low = static_cast<float>(a.p0), width = static_cast<float>(range);
                       for (int64_t i = 0; i < n; ++i) out[at + i] = static_cast<T>(low + uniform_of<T>(w[i]) * width);
                     }
                   });
  });
}

void normal(const RandomArgs& a, Stream&) {
  dispatch_floating(a.out.dtype, "normal", [&]<class T>() {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    T* out = static_cast<T*>(a.out.pointer);
    const int64_t numel = a.out.numel();
    for_each_batch(numel + numel % 2, random_words(dtype_of<T>), a.state,
                   [&](int64_t at, int64_t n, const std::uint32_t* w) {
                     alignas(64) C u[kBatch / 2 + 64] = {}, v[kBatch / 2 + 64] = {};
                     const int64_t pairs = n / 2;
                     for (int64_t i = 0; i < pairs; ++i) {
                       if constexpr (std::is_same_v<T, double>) {
                         u[i] = uniform_of_two(w + 4 * i);
                         v[i] = uniform_of_two(w + 4 * i + 2);
                       } else {
                         u[i] = uniform24(w[2 * i]);
                         v[i] = uniform24(w[2 * i + 1]);
                       }
                     }
                     if constexpr (std::is_same_v<T, double>) {
                       HWY_DYNAMIC_DISPATCH(box_muller_f64)(u, v, pairs, a.p0, a.p1);
                     } else {
                       HWY_DYNAMIC_DISPATCH(box_muller_f32)(u, v, pairs, a.p0, a.p1);
                     }
                     for (int64_t i = 0; i < pairs; ++i) {
                       out[at + 2 * i] = static_cast<T>(u[i]);
                       if (at + 2 * i + 1 < numel) out[at + 2 * i + 1] = static_cast<T>(v[i]);
                     }
                   });
  });
}

void randint(const RandintArgs& a, Stream&) {
  const auto range = static_cast<std::uint64_t>(a.high) - static_cast<std::uint64_t>(a.low);
  dispatch_numeric(a.out.dtype, "randint", [&]<class T>() {
    T* out = static_cast<T*>(a.out.pointer);
    for_each_batch(a.out.numel(), 2, a.state, [&](int64_t at, int64_t n, const std::uint32_t* w) {
      for (int64_t i = 0; i < n; ++i) {
        const std::uint64_t bits = (static_cast<std::uint64_t>(w[2 * i]) << 32) | w[2 * i + 1];
        const auto offset = static_cast<std::uint64_t>((static_cast<levin::detail::u128>(bits) * range) >> 64);
        out[at + i] = static_cast<T>(static_cast<int64_t>(static_cast<std::uint64_t>(a.low) + offset));
      }
    });
  });
}

void bernoulli(const BernoulliArgs& a, Stream&) {
  dispatch_floating(a.out.dtype, "bernoulli", [&]<class T>() {
    T* out = static_cast<T*>(a.out.pointer);
    const T* p = static_cast<const T*>(a.p.pointer);
    for_each_batch(a.out.numel(), 1, a.state, [&](int64_t at, int64_t n, const std::uint32_t* w) {
      for (int64_t i = 0; i < n; ++i) {
        const auto chance = static_cast<double>(p[at + i]);
        if (!(chance >= 0.0 && chance <= 1.0))
          throw ValueError(fmt::format("[bernoulli] the probability {} is not in [0, 1].", chance));
        out[at + i] = static_cast<T>(uniform24(w[i]) < chance ? 1.0f : 0.0f);
      }
    });
  });
}

void dropout(const DropoutArgs& a, Stream&) {
  const std::uint32_t limit = dropout_limit(a.p);
  dispatch_floating(a.out.dtype, "dropout", [&]<class T>() {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const C scale = static_cast<C>(dropout_factor(a.p));
    T* out = static_cast<T*>(a.out.pointer);
    const T* x = static_cast<const T*>(a.x.pointer);
    for_each_batch(a.out.numel(), 1, a.state, [&](int64_t at, int64_t n, const std::uint32_t* w) {
      if constexpr (std::is_same_v<T, float>) {
        HWY_DYNAMIC_DISPATCH(dropout_f32)(w, x + at, out + at, n, limit, scale);
      } else {
        for (int64_t i = 0; i < n; ++i)
          out[at + i] = (w[i] >> 8) < limit ? T{} : static_cast<T>(static_cast<C>(x[at + i]) * scale);
      }
    });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(RandomArgs, uniform, cpu::uniform);
LEVIN_KERNEL(RandomArgs, normal, cpu::normal);
LEVIN_KERNEL(RandintArgs, randint, cpu::randint);
LEVIN_KERNEL(BernoulliArgs, bernoulli, cpu::bernoulli);
LEVIN_KERNEL(DropoutArgs, dropout, cpu::dropout);

}  // namespace levin::kernels
#endif
