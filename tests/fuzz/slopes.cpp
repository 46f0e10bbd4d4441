#include "fuzz/slopes.h"

#include "fuzz/noise.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace levin::fuzz {

namespace {

constexpr double kStep = 1e-5, kUlp = 0x1p-52;
constexpr double kLargest = 1e6, kSmallest = 1e-3;  // magnitudes for which a step of this size is suitable
constexpr int kDirections = 5;                      // must agree on a fault, because kinks may cancel along one
constexpr int kNoisyRuns = 5, kMostRuns = 40;       // runs with noise that must return, and that are tried

/// Returns whether no result is so large that a small step of a leaf crosses many jumps of floor() or remainder().
bool has_moderate_results(const Program& p) {
  const no_grad guard;
  Tensors leaves, results;
  for (const Leaf& leaf : p.leaves) leaves.push_back(leaf.exact());
  run(p, leaves, has_reference(p), nullptr, &results);
  return std::ranges::all_of(results, [](const Tensor& y) {
    return !y.is_floating() ||
           std::ranges::all_of(y.to_vector<double>(), [](double v) { return !(std::abs(v) > kLargest); });
  });
}

bool is_moderate(const std::vector<Leaf>& leaves) {
  for (const Leaf& leaf : leaves)
    for (const double v : leaf.exact().to_vector<double>())
      if (!(std::abs(v) <= kLargest) || (v != 0 && std::abs(v) < kSmallest)) return false;
  return true;
}

/// Returns a copy whose differentiable leaves, and with `cotangents` also these, have moved along a direction.
Program moved(const Program& p, double by, std::uint64_t direction, bool cotangents) {
  Program q = p;
  Generator g(direction);
  const auto move = [&](Leaf& leaf) {
    std::vector<double> values = leaf.exact().to_vector<double>();
    for (double& v : values) v += by * std::copysign(0.5 + 0.5 * g.uniform(), g.uniform() - 0.5);
    leaf.strides = contiguous_strides(leaf.sizes);
    leaf.offset = 0;
    leaf.memory = std::move(values);
    if (leaf.memory.empty()) leaf.memory = {0};
  };
  for (Leaf& leaf : q.leaves)
    if (leaf.differentiable) move(leaf);
  for (Leaf& leaf : q.cotangents)
    if (cotangents) move(leaf);
  return q;
}

/// sum(a * b), and the magnitude of its terms.
struct Product {
  double value = 0, magnitude = 0;
  void add(const std::vector<double>& a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) value += a[i] * b[i], magnitude += std::abs(a[i] * b[i]);
  }
};

/// Returns the gradients' slope along a direction.
Product along(const Program& p, const Tensors& gradients, std::uint64_t direction, bool cotangents) {
  const Program ahead = moved(p, 1, direction, cotangents);
  Product sum;
  std::size_t k = 0;
  const auto add = [&](const Leaf& from, const Leaf& to) {
    const Tensor& g = gradients[k++];
    if (!g.defined()) return;
    const auto a = from.exact().to_vector<double>(), b = to.exact().to_vector<double>();
    std::vector<double> step(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) step[i] = b[i] - a[i];
    sum.add(g.to_vector<double>(), step);
  };
  for (std::size_t i = 0; i < p.leaves.size(); ++i)
    if (p.leaves[i].differentiable) add(p.leaves[i], ahead.leaves[i]);
  for (std::size_t i = 0; i < p.cotangents.size(); ++i)
    if (cotangents) add(p.cotangents[i], ahead.cotangents[i]);
  return sum;
}

/// Returns the outputs of the reference, or of the operations themselves without one, weighted by the cotangents.
/// `places` says which outputs these belong to.
double weighted_outputs(const Program& p, const std::vector<std::size_t>& places, Noise* noise) {
  const no_grad guard;
  Tensors leaves;
  for (const Leaf& leaf : p.leaves) leaves.push_back(leaf.exact());
  const Tensors outputs = run(p, leaves, has_reference(p), noise);
  Product sum;
  for (std::size_t i = 0; i < places.size(); ++i)
    sum.add(outputs[places[i]].to_vector<double>(), p.cotangents[i].exact().to_vector<double>());
  return sum.value;
}

/// Returns Levin's first gradients, weighted as in run_levin().
double weighted_gradients(const Program& p, Noise* noise) {
  const Results r = run_levin(p, true, noise);
  Product sum;
  for (std::size_t i = 0; i < r.first.size(); ++i)
    if (r.first[i].defined() && r.first[i].requires_grad())
      sum.add(r.first[i].to_vector<double>(), weights_of(r.first[i].numel(), i));
  return sum.value;
}

using Weighted = std::function<double(const Program&, Noise*)>;
using Slopes = std::function<Tensors(Noise*)>;

/// A slope by finite differences, with its error bound.
struct Difference {
  double slope = 0;
  double allowed = 0;  ///< the allowed difference to the slope by gradients
};

/// Computes it with steps of `step` and half of it.
Difference difference(const Program& p, bool cotangents, std::uint64_t direction, double step, const Weighted& f) {
  const auto at = [&](double by) { return f(moved(p, by, direction, cotangents), nullptr); };
  const double here = at(0), ahead = at(step), behind = at(-step);
  const double wide = (ahead - behind) / (2 * step), narrow = (at(step / 2) - at(-step / 2)) / step;
  const double kink = std::abs((ahead - here) - (here - behind)) / step;
  return {wide, kink + 16 * std::abs(wide - narrow) + 1e-9};
}

/// Returns how far the slope along the sum of two directions is from the sum of both slopes. A large distance shows a
/// kink, even if the differences ahead and behind agree along each direction, as those of a median of equal numbers do.
double bend(const Program& p, bool cotangents, std::uint64_t direction, double step, const Weighted& f) {
  const double here = f(p, nullptr);
  const auto slope = [&](const Program& at) { return (f(at, nullptr) - here) / step; };
  const std::uint64_t other = direction % kDirections + 1;
  const Program first = moved(p, step, direction, cotangents), second = moved(p, step, other, cotangents);
  return std::abs(slope(moved(first, step, other, cotangents)) - slope(first) - slope(second));
}

/// Returns the effect of rounding on both slopes; infinity if every run with noise leaves an operation's domain.
double rounding(const Program& p, bool cotangents, std::uint64_t direction, double step, const Slopes& gradients,
                const Weighted& f) {
  const double here = f(p, nullptr), slope = along(p, gradients(nullptr), direction, cotangents).value;
  double allowed = 0;
  int returned = 0;
  for (std::uint64_t seed = 1; seed <= kMostRuns && returned < kNoisyRuns; ++seed) {
    Noise of_value(seed, kUlp), of_slope(seed, kUlp);
    const auto value = with_noise(of_value, [&](Noise* n) { return f(p, n); });
    const auto by_gradients =
        with_noise(of_slope, [&](Noise* n) { return along(p, gradients(n), direction, cotangents).value; });
    if (!value || !by_gradients) continue;
    ++returned;
    allowed += 32 * (std::abs(*value - here) + kUlp * std::abs(here)) / step;
    allowed += 8 * std::abs(*by_gradients - slope);
  }
  return returned == 0 ? std::numeric_limits<double>::infinity() : allowed;
}

/// Returns the difference of the slopes by gradients and of `f` if they differ along all of several directions and for
/// all steps, else an empty string: along one direction kinks may cancel, and a jump may lie within a step but not
/// within a smaller one.
std::string differs(const char* what, const Program& p, bool cotangents, const Slopes& gradients, const Weighted& f) {
  std::string wrong;
  for (std::uint64_t direction = 1; direction <= kDirections; ++direction) {
    const Product slope = along(p, gradients(nullptr), direction, cotangents);
    for (const double step : {kStep, kStep / 32, kStep / 1024}) {
      const Difference d = difference(p, cotangents, direction, step, f);
      if (!std::isfinite(d.slope) || !std::isfinite(d.allowed)) return {};
      const double error = std::abs(slope.value - d.slope);
      double allowed = d.allowed + 1e-7 * slope.magnitude;
      if (!(error <= allowed)) allowed += 16 * bend(p, cotangents, direction, step, f);
      if (!(error <= allowed)) allowed += rounding(p, cotangents, direction, step, gradients, f);
      if (error <= allowed || std::isnan(allowed)) return {};
      wrong = fmt::format("the slope along a direction is {:.9g} by {}, {:.9g} by differences; allowed is {:.3g}",
                          slope.value, what, d.slope, allowed);
    }
  }
  return wrong;
}

/// In a graph a result may lie on a kink although the whole function is smooth there, such as the gradient of x^2 by
/// |x^2|. Then the slopes agree next to that point.
std::string differs_beside(const char* what, const Program& p, bool second, const Weighted& f) {
  const auto slopes_at = [second](const Program& at) -> Slopes {
    return [&at, second](Noise* noise) {
      Results r = run_levin(at, true, noise);
      return second ? r.second : r.first;
    };
  };
  const std::string wrong = differs(what, p, second, slopes_at(p), f);
  if (wrong.empty() || !p.is_graph()) return wrong;
  const Program beside = moved(p, 8 * kStep, kDirections + 1, false);
  return differs(what, beside, second, slopes_at(beside), f);
}

}  // namespace

std::string wrong_slopes(const Program& p, const Results& actual, const Results& exact) {
  if (!is_moderate(p.leaves) || !is_moderate(p.cotangents) || !has_moderate_results(p)) return {};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < actual.outputs.size(); ++i)
    if (actual.outputs[i].requires_grad()) places.push_back(i);
  const std::string wrong = differs_beside(
      "gradients", p, false, [&](const Program& q, Noise* noise) { return weighted_outputs(q, places, noise); });
  if (!wrong.empty()) return wrong;
  return exact.second.empty() ? std::string() : differs_beside("second gradients", p, true, weighted_gradients);
}

}  // namespace levin::fuzz
