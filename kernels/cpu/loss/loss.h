#pragma once
// The SIMD functions of the losses, chosen at run time, and the error for a label out of range.

#include <levin/core/error.h>

#include <fmt/format.h>

#include <cstdint>

namespace levin::kernels::cpu {

/// A sum of two doubles: value is the nearest double, rest is the remainder.
struct ExactSum {
  double value, rest;
};

template <class T>
struct LossRows {
  /// Computes the log of the sum of exp of each of `rows` contiguous rows, as value + rest.
  void (*log_sum_exp)(const T* x, std::int64_t rows, std::int64_t n, double* value, double* rest);
  /// Computes dx = scale * exp(x - lse).
  void (*scaled_softmax)(const T* x, ExactSum lse, T scale, T* dx, std::int64_t n);
  /// Returns the sum of the binary cross-entropies of n elements; each is also written to `out` unless that is null.
  /// `target` advances by `target_step`, 0 or 1.
  double (*bce)(const T* x, const T* target, std::int64_t target_step, T* out, std::int64_t n);
  /// Computes dx = scale * g * (sigmoid(x) - target); g advances by `g_step`, 0 or 1.
  void (*bce_backward)(const T* x, const T* target, std::int64_t target_step, const T* g, std::int64_t g_step, T scale,
                       T* dx, std::int64_t n);
  /// Returns the sum of the terms of HuberSumArgs.
  double (*huber)(const T* x, const T* target, T limit, std::int64_t n);
};

/// Losses above this belong to samples without a path.
inline constexpr double kCtcNoPath = 5e29;

/// A sample of CtcArgs: at step t, x and dx are `step` elements further.
struct CtcSample {
  const float* x;
  std::int64_t step;
  const std::int64_t* classes;  ///< (states)
  const bool* skips;            ///< (states)
  std::int64_t steps, states;   ///< 1 or more
  float* dx;                    ///< zeros, or null
};

/// Throws IndexError for label number `at`.
[[noreturn]] inline void label_out_of_range(const char* op, std::int64_t label, std::int64_t at, std::int64_t classes,
                                            std::int64_t ignored) {
  throw IndexError(
      fmt::format("[{}] target {} at position {} is outside [0, {}). Labels count from 0; to leave a sample out, give "
                  "it ignore_index ({}).",
                  op, label, at, classes, ignored));
}

const LossRows<float>& loss_rows(float);
const LossRows<double>& loss_rows(double);

}  // namespace levin::kernels::cpu
