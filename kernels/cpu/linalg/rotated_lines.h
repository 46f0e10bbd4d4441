#pragma once
// Rotations of the iterations that make a tridiagonal or bidiagonal matrix diagonal. The iterations compute in double
// for both types; the rotations of many steps are collected and then applied to the vectors at once.

#include "kernels/cpu/linalg/buffer.h"
#include "kernels/cpu/linalg/lines.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

namespace levin::kernels::cpu::linalg {

inline constexpr int64_t kTasks = 64;               // columns of the vectors per task
inline constexpr std::size_t kCollected = 1 << 15;  // rotations that are applied at once
inline constexpr int64_t kSteps = 60;               // per element; most need two

/// (c, s) and r with (f, g) rotated to (r, 0).
inline Rotation<double> rotation_of(double f, double g, double& r) {
  if (g == 0) return r = f, Rotation<double>{1, 0};
  const double squares = f * f + g * g;
  r = squares > 1e-280 ? std::sqrt(squares) : std::hypot(f, g);
  const double inverse = 1 / r;
  return {f * inverse, g * inverse};
}

/// Vectors, one a line, and the rotations that wait to be applied to them.
template <class T>
class RotatedLines {
 public:
  RotatedLines(Buffer<T> lines, int64_t columns) : lines_(std::move(lines)), columns_(columns) {}

  /// Begins a chain of rotations at line `first`.
  void begin(int64_t first, int64_t step) {
    if (list_.size() > kCollected) apply();
    chains_.push_back({first, step, static_cast<int64_t>(list_.size()), 0});
  }
  void add(Rotation<double> r) {
    list_.push_back({static_cast<T>(r.c), static_cast<T>(r.s)});
    ++chains_.back().count;
  }
  void apply() {
    parallel_for(0, columns_, kTasks, [&](int64_t b, int64_t e) {
      rotate(lines_.data() + b, columns_, e - b, chains_.data(), static_cast<int64_t>(chains_.size()), list_.data());
    });
    list_.clear();
    chains_.clear();
  }
  T* line(int64_t i) { return lines_.data() + i * columns_; }
  Buffer<T> take() { return std::move(lines_); }

 private:
  Buffer<T> lines_;
  int64_t columns_;
  Buffer<Chain> chains_;
  Buffer<Rotation<T>> list_;
};

/// Elements of a diagonal, counted from either end.
struct Walk {
  double* p;
  int64_t step;
  double& operator[](int64_t i) const { return p[i * step]; }
};

/// A power of two by which the largest magnitude of a (n) becomes about 1, or 1 if it is in a safe range; 0 if a value
/// is not finite.
template <class T>
T scale_of(const T* a, int64_t n) {
  T largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(a[i])) return T(0);
    largest = std::max(largest, std::abs(a[i]));
  }
  const T wide = std::ldexp(T(1), std::numeric_limits<T>::max_exponent / 4);
  if (largest == T(0) || (largest < wide && largest > 1 / wide)) return T(1);
  using Limits = std::numeric_limits<T>;
  return std::ldexp(T(1), std::clamp(-std::ilogb(largest), Limits::min_exponent, Limits::max_exponent - 1));
}

/// The order of `values` by `less`.
template <class Less>
std::vector<std::size_t> order(const Buffer<double>& values, Less less) {
  std::vector<std::size_t> indices(values.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::stable_sort(indices.begin(), indices.end(), [&](auto i, auto j) { return less(values[i], values[j]); });
  return indices;
}

}  // namespace levin::kernels::cpu::linalg
