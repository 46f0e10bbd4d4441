#pragma once
// Products on raw pointers beside simple loops in double precision (for integers in wrapping 64-bit arithmetic).
#include "kernels/cpu/gemm/ladder.h"
#include "support/comparison.h"

#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace levin::test {

using namespace levin::kernels::cpu;

/// Restores the number of threads.
struct ThreadsGuard {
  int before = num_threads();
  ~ThreadsGuard() { set_num_threads(before); }
};

struct Problem {
  int64_t m, n, k, batch = 1;
  bool transpose_a = false, transpose_b = false;
  double alpha = 1, beta = 0;
  bool bias = false;
  int64_t spread = 1;  // factor of all strides of A and B; with 2 there is no unit stride
  int64_t gap = 3;     // elements between the rows of C
};

inline std::string describe(const Problem& p) {
  return std::to_string(p.batch) + " x (" + std::to_string(p.m) + ", " + std::to_string(p.n) + ", " +
         std::to_string(p.k) + ") " + (p.transpose_a ? "A^T " : "") + (p.transpose_b ? "B^T " : "") + "spread " +
         std::to_string(p.spread);
}

template <class T>
T value(std::mt19937_64& random) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else {
    return T(static_cast<float>(static_cast<double>(random() >> 40) / (1 << 23) - 1.0));
  }
}

/// Operands, with guards around C. run() computes; worst() returns the largest error relative to the allowed one.
template <class T>
struct Product {
  static constexpr int64_t guard = 32;
  using Exact = std::conditional_t<std::is_integral_v<T>, std::uint64_t, double>;

  Problem p;
  std::vector<T> a, b, c, c_before, bias;
  GemmArgs<T> args;

  explicit Product(const Problem& problem) : p(problem) {
    std::mt19937_64 random(static_cast<std::uint64_t>(p.m * 10007 + p.n * 101 + p.k));
    const auto fill = [&random](std::vector<T>& v, int64_t size) {
      for (int64_t i = 0; i < size; ++i) v.push_back(value<T>(random));
    };
    const int64_t a_size = p.m * p.k * p.spread, b_size = p.k * p.n * p.spread, c_rs = p.n + p.gap;
    fill(a, a_size * p.batch);
    fill(b, b_size * p.batch);
    fill(c, p.batch * p.m * c_rs + 2 * guard);
    fill(bias, p.n);
    if (p.beta == 0.0 && !std::is_integral_v<T>) {  // C must not be read
      for (int64_t i = 0; i < p.batch * p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) c[at(i * c_rs + j + guard)] = T(std::numeric_limits<float>::quiet_NaN());
      }
    }
    c_before = c;
    args = {.m = p.m,
            .n = p.n,
            .k = p.k,
            .a = a.data(),
            .a_rs = (p.transpose_a ? 1 : p.k) * p.spread,
            .a_cs = (p.transpose_a ? p.m : 1) * p.spread,
            .b = b.data(),
            .b_rs = (p.transpose_b ? 1 : p.n) * p.spread,
            .b_cs = (p.transpose_b ? p.k : 1) * p.spread,
            .c = c.data() + guard,
            .c_rs = c_rs,
            .alpha = GemmScalar<T>(p.alpha),
            .beta = GemmScalar<T>(p.beta),
            .bias_n = p.bias ? bias.data() : nullptr,
            .batch = p.batch,
            .a_bs = a_size,
            .b_bs = b_size,
            .c_bs = p.m * c_rs};
  }

  static std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }
  static Exact exact(T x) { return static_cast<Exact>(x); }

  /// A B and the sums of the magnitudes of its terms, (batch, m, n).
  struct Sum {
    Exact value = 0;
    double magnitude = 0;
  };
  std::vector<Sum> sums() const {
    std::vector<Sum> all;
    all.reserve(at(p.batch * p.m * p.n));
    for (int64_t item = 0; item < p.batch; ++item)
      for (int64_t i = 0; i < p.m; ++i)
        for (int64_t j = 0; j < p.n; ++j) all.push_back(sum(item, i, j));
    return all;
  }

  Sum sum(int64_t item, int64_t i, int64_t j) const {
    const T *from_a = args.a + item * args.a_bs + i * args.a_rs, *from_b = args.b + item * args.b_bs + j * args.b_cs;
    const int64_t k = p.k, a_step = args.a_cs, b_step = args.b_rs;
    Sum evens, odds;  // of even and odd terms, whose additions do not wait for each other
    const auto add = [](Sum& to, const T& x, const T& y) {
      const Exact term = static_cast<Exact>(x) * static_cast<Exact>(y);
      to.value += term, to.magnitude += std::abs(static_cast<double>(term));
    };
    for (int64_t q = 0; q + 1 < k; q += 2, from_a += 2 * a_step, from_b += 2 * b_step) {
      add(evens, *from_a, *from_b);
      add(odds, from_a[a_step], from_b[b_step]);
    }
    if (k % 2 != 0) add(evens, *from_a, *from_b);
    return {evens.value + odds.value, evens.magnitude + odds.magnitude};
  }

  /// Returns the worst error relative to gamma_(k + 3) times the sum of magnitudes; above 1 is wrong. Returns infinity
  /// if a guard changed.
  double worst() const { return worst(sums()); }
  double worst(const std::vector<Sum>& exact_sums) const {
    const auto inside = [this](int64_t i) {
      const int64_t position = i - guard;
      return position >= 0 && position < p.batch * args.c_bs && position % args.c_rs < p.n;
    };
    Largest result;
    for (int64_t i = 0; i < static_cast<int64_t>(c.size()); ++i) {
      if (!inside(i)) {
        if (std::memcmp(&c[at(i)], &c_before[at(i)], sizeof(T)) != 0) return std::numeric_limits<double>::infinity();
        result.add(0);
        continue;
      }
      const int64_t row = (i - guard) / args.c_rs, column = (i - guard) % args.c_rs;
      result.add(error(exact_sums[at(row * p.n + column)], column, i));
    }
    return result.value();
  }

  double error(const Sum& exact_sum, int64_t j, int64_t position) const {
    auto [sum, magnitude] = exact_sum;
    sum *= exact(T(args.alpha));
    magnitude *= std::abs(p.alpha);
    const auto add = [&](Exact term) {
      sum += term;
      magnitude += std::abs(static_cast<double>(term));
    };
    if (p.beta != 0.0) add(exact(T(args.beta)) * exact(c_before[at(position)]));
    if (p.bias) add(exact(bias[at(j)]));
    const T got = c[at(position)];
    if constexpr (std::is_integral_v<T>) {
      return got == static_cast<T>(sum) ? 0.0 : 2.0;
    } else {
      constexpr bool half = sizeof(T) == 2;
      const double unit = half ? 0x1p-24 : static_cast<double>(std::numeric_limits<GemmScalar<T>>::epsilon()) / 2;
      const double rounding = half ? (std::is_same_v<T, Half> ? 0x1p-11 : 0x1p-8) * std::abs(sum) + 0x1p-25 : 0.0;
      const double allowed = static_cast<double>(p.k + 4) * unit * magnitude + rounding;
      const double off = std::abs(static_cast<double>(got) - sum);
      return off == 0 ? 0.0 : off / allowed;
    }
  }
};

/// Returns the sums of a product whose operands are as they were made. Problems that differ in alpha, beta, bias or gap
/// have the same, so they are kept; all of them are dropped at 32 MiB.
template <class T>
const std::vector<typename Product<T>::Sum>& kept_sums(const Product<T>& product) {
  static std::map<std::string, std::vector<typename Product<T>::Sum>> kept;
  static std::size_t bytes = 0;
  const std::string name = describe(product.p);
  if (const auto known = kept.find(name); known != kept.end()) return known->second;
  if (bytes > std::size_t{32} << 20) kept.clear(), bytes = 0;
  const auto& sums = kept[name] = product.sums();
  bytes += sums.size() * sizeof(sums[0]);
  return sums;
}

template <class T>
void check(const Problem& p) {
  Product<T> product(p);
  gemm(product.args);
  CHECK_MESSAGE(product.worst(kept_sums(product)) <= 1.0, describe(p));
}

}  // namespace levin::test
