#pragma once
// Contracts of random numbers. Each is a function of (seed, offset, index of the element): Philox block offset + k
// holds four 32-bit words, and element i of out (contiguous) takes the words [i w, i w + w) of the sequence that begins
// at block `offset`, with w = 1 or 2 as stated. No number therefore depends on threads or devices. A state with a base
// is for kernels of the device on which the base lies.

#include <levin/core/generator.h>
#include <levin/kernels/kernel.h>

#include <algorithm>

namespace levin::kernels {

/// Returns the number of Philox blocks that `numel` elements of `words` 32-bit words use.
constexpr std::uint64_t random_blocks(int64_t numel, int words) {
  return (static_cast<std::uint64_t>(numel) * static_cast<std::uint64_t>(words) + 3) / 4;
}
/// Returns the number of words per element of a floating type: two for f64, else one.
constexpr int random_words(DType t) { return t == DType::f64 ? 2 : 1; }

/// Fill out with random numbers from `state` on.
/// uniform: p0 + u * (p1 - p0) with u in [0, 1) of 53 (f64), 24 (f32), 11 (f16) or 8 (bf16) bits.
/// normal: mean p0 and standard deviation p1, by Box-Muller from the pair of elements (2k, 2k + 1).
/// Floating types; w = random_words(dtype). normal rounds numel up to an even number of elements.
struct RandomArgs {
  TensorView out;
  PhiloxState state;
  double p0 = 0.0, p1 = 1.0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out), 2 * count(out), out.dtype}; }
};
extern constinit Kernel<void(const RandomArgs&, Stream&)> uniform, normal;

/// Computes out = low + floor(u * (high - low)) with u of 64 bits from `state` on, w = 2; the bias is below
/// (high - low) / 2^64. Any type but bool.
struct RandintArgs {
  TensorView out;
  PhiloxState state;
  int64_t low = 0, high = 1;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out), 0, out.dtype}; }
};
extern constinit Kernel<void(const RandintArgs&, Stream&)> randint;

/// Computes out = 1 where u < p (of out's sizes, contiguous, the same floating type), else 0; u has 24 bits from
/// `state` on, w = 1.
struct BernoulliArgs {
  TensorView out, p;
  PhiloxState state;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, p), count(out), out.dtype}; }
};
extern constinit Kernel<void(const BernoulliArgs&, Stream&)> bernoulli;

/// Returns the number below which 24 random bits drop an element: u < p, decided by integers.
inline std::uint32_t dropout_limit(double p) { return static_cast<std::uint32_t>(std::min(p * 0x1p24, 0x1p24)); }
/// Returns the factor of the elements that stay.
inline double dropout_factor(double p) { return p < 1.0 ? 1.0 / (1.0 - p) : 0.0; }

/// Dropout (Srivastava et al. 2014, inverted): computes out = x / (1 - p) where u >= p, else 0, with u of 24 bits from
/// word i of the sequence that begins at `state`. The mask is never stored: the same call on the gradient is the
/// backward. Floating types; out and x are contiguous and may be the same memory. Bytes: x once, out once.
struct DropoutArgs {
  TensorView out, x;
  PhiloxState state;
  double p = 0.5;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const { return {bytes(out, x), 2 * count(x), x.dtype}; }
};
extern constinit Kernel<void(const DropoutArgs&, Stream&)> dropout;

}  // namespace levin::kernels
