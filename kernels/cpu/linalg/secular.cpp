// The zeros of f(x) = 1 / rho + sum of z_j^2 / (pole_j - x), one to the right of each pole (Golub and Van Loan, Matrix
// Computations, chapter 8; the iteration is the middle way of Li, LAPACK Working Note 89).

#include "kernels/cpu/linalg/secular.h"

#include "kernels/cpu/linalg/lines.h"

#include <levin/core/parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

namespace levin::kernels::cpu::linalg {

namespace {

constexpr int kIterations = 200;            // most roots need four
constexpr int64_t kPairsPerTask = 1 << 12;  // of a root and a pole
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// The zero of c x^2 - a x + b that lies between the two poles of the fraction it comes from, or above both.
double quadratic_root(double a, double b, double c, bool above) {
  const double root = std::sqrt(std::abs(a * a - 4 * b * c)), signed_root = above ? root : -root;
  return (a >= 0) == above ? (a + signed_root) / (2 * c) : 2 * b / (a - signed_root);
}

/// Root i, whose distance from its nearest pole is found, and the poles' distances from it.
class RootSearch {
 public:
  RootSearch(const Secular& problem, const Buffer<double>& weights, int64_t i, double* deltas)
      : problem_(problem),
        weights_(weights.data()),
        last_(i == problem.size() - 1),
        left_(last_ ? i - 1 : i),
        right_(left_ + 1),
        deltas_(deltas) {}

  /// NaN if the iteration does not end.
  double run() {
    double x = start();
    for (int step = 0; step < kIterations; ++step) {
      const Value f = value(x);
      const double slopes = f.below.slope + f.above.slope;
      const double rounding = 1 / problem_.rho + std::abs(f.below.value) + std::abs(f.above.value);
      if (std::abs(f.sum) <= kEpsilon * (8 * rounding + std::abs(x) * slopes)) return finish(x);
      (f.sum < 0 ? low_ : high_) = x;
      // Each side becomes one fraction with the pole next to the root, with the side's value and slope at x.
      const double l = deltas_[left_] - x, r = deltas_[right_] - x;
      const double c = f.sum - l * f.below.slope - r * f.above.slope;
      const double next = inside(x + quadratic_root((l + r) * f.sum - l * r * slopes, l * r * f.sum, c, last_));
      if (std::abs(next - x) <= kEpsilon * std::abs(x)) return finish(next);
      x = next;
    }
    return std::numeric_limits<double>::quiet_NaN();
  }

 private:
  struct Value {
    PoleSum below, above;
    double sum;
  };

  Value value(double x) const {
    const PoleSum below = sum_of_poles(right_, weights_, deltas_, x);
    const PoleSum above = sum_of_poles(problem_.size() - right_, weights_ + right_, deltas_ + right_, x);
    return {below, above, 1 / problem_.rho + below.value + above.value};
  }

  void measure_from(int64_t pole) {
    origin_ = problem_.poles[static_cast<std::size_t>(pole)];
    for (int64_t j = 0; j < problem_.size(); ++j) deltas_[j] = problem_.poles[static_cast<std::size_t>(j)] - origin_;
  }

  double inside(double x) const { return x > low_ && x < high_ ? x : (low_ + high_) / 2; }

  /// Chooses the pole from which distances are measured, by the sign of f in the middle of the root's interval, and
  /// solves the equation of the two nearest poles, with the others as they are in the middle.
  double start() {
    const int64_t n = problem_.size();
    measure_from(last_ ? right_ : left_);
    low_ = 0;
    high_ = last_ ? problem_.rho * std::accumulate(weights_, weights_ + n, 0.0) : deltas_[right_];
    const double middle = high_ / 2, f = value(middle).sum, left = weights_[left_], right = weights_[right_];
    const double others = f - left / (deltas_[left_] - middle) - right / (deltas_[right_] - middle);
    (f < 0 ? low_ : high_) = middle;
    if (!last_ && f < 0) {
      measure_from(right_);
      low_ = -middle;
      high_ = 0;
    }
    const double l = deltas_[left_], r = deltas_[right_];
    return inside(
        quadratic_root(others * (l + r) + left + right, others * l * r + left * r + right * l, others, last_));
  }

  double finish(double x) {
    for (int64_t j = 0; j < problem_.size(); ++j) deltas_[j] -= x;
    return origin_ + x;
  }

  const Secular& problem_;
  const double* weights_;
  bool last_;
  int64_t left_, right_;  ///< the two poles that are nearest to the root
  double* deltas_;
  double origin_ = 0, low_ = 0, high_ = 0;
};

}  // namespace

bool find_roots(const Secular& problem, SecularRoots& found) {
  const int64_t n = problem.size();
  found.roots.resize(static_cast<std::size_t>(n));
  found.deltas.resize(static_cast<std::size_t>(n * n));
  Buffer<double> weights(problem.z);
  for (double& w : weights) w *= w;
  if (n == 1) {
    found.deltas[0] = -problem.rho * weights[0];
    found.roots[0] = problem.poles[0] - found.deltas[0];
    return true;
  }
  std::atomic<bool> ended{true};
  parallel_for(0, n, std::max<int64_t>(1, kPairsPerTask / n), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const double root = RootSearch(problem, weights, i, found.deltas.data() + i * n).run();
      if (!std::isfinite(root)) ended = false;
      found.roots[static_cast<std::size_t>(i)] = root;
    }
  });
  return ended;
}

void refine(Secular& problem, const SecularRoots& found) {
  const int64_t n = problem.size();
  Buffer<double> squares(static_cast<std::size_t>(n), 1.0);
  for (int64_t i = 0; i < n; ++i) {
    const double *deltas = found.deltas.data() + i * n, *poles = problem.poles.data();
    multiply_by_ratios(i, deltas, poles, poles[i], squares.data());
    squares[static_cast<std::size_t>(i)] *= -deltas[i];
    multiply_by_ratios(n - i - 1, deltas + i + 1, poles + i + 1, poles[i], squares.data() + i + 1);
  }
  for (std::size_t j = 0; j < squares.size(); ++j) problem.z[j] = std::copysign(std::sqrt(squares[j]), problem.z[j]);
}

}  // namespace levin::kernels::cpu::linalg
