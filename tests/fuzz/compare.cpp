#include "fuzz/compare.h"

#include "fuzz/noise.h"
#include "fuzz/slopes.h"
#include "support/ops/op_runs.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops/creation.h>
#include <levin/core/allocator.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace levin::fuzz {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kFewRuns = 6, kManyRuns = 60;  // runs with noise: at first, and before reporting a difference
constexpr double kUndetermined = 1000;       // a spread larger than this and half of the result determines nothing
constexpr double kNoiseFactor = 8;           // on the effect of noise of an ulp, times 1 + sqrt(terms)

double largest_of(DType t) {
  return t == DType::f16    ? 65504
         : t == DType::bf16 ? 0x1.FEp127
         : t == DType::f32  ? 3.4028234663852886e38
                            : std::numeric_limits<double>::max();
}
double smallest_of(DType t) { return t == DType::f64 ? 0x1p-1022 : t == DType::f16 ? 0x1p-14 : 0x1p-126; }

Tensors reference_leaves(const Program& p) {
  Tensors leaves;
  for (const Leaf& leaf : p.leaves) leaves.push_back(leaf.exact());
  return leaves;
}

/// Rule 1. If the square of a leaf or a result exceeds the range of the type, an intermediate may overflow or underflow
/// in the type but not in the double reference, and elements that differ are not compared. Values of pointwise
/// operations are still compared. If the exact result exceeds the range, NaN may replace infinity, because two parts
/// may overflow; so may the parts of a second gradient if the square of an element exceeds the range.
bool near_the_range(const Program& p) {
  if (!is_floating(p.dtype)) return false;
  const no_grad guard;
  const double high = std::sqrt(largest_of(p.dtype)), low = std::sqrt(smallest_of(p.dtype));
  for (const std::vector<Leaf>* list : {&p.leaves, &p.cotangents})
    for (const Leaf& leaf : *list)
      if (leaf.tested)
        for (const double v : leaf.memory)
          if (std::isfinite(v) && v != 0 && (std::abs(v) > high || std::abs(v) < low)) return true;
  Tensors results;
  run(p, reference_leaves(p), false, nullptr, &results);
  for (const Tensor& y : results)
    for (const double v : y.is_floating() ? y.to_vector<double>() : std::vector<double>())
      if (std::abs(v) > high || (v != 0 && std::abs(v) < low)) return true;
  return false;
}

/// Rule 2. Beyond an integer type's range the result wraps, unlike in a double reference; NaN has no integer value.
bool beyond_integers(DType t, double v) {
  if (is_floating(t) || t == DType::boolean) return false;
  const double bits = static_cast<double>(8 * size_of(t) - (t == DType::u8 ? 0 : 1));
  return std::isnan(v) || v >= std::exp2(std::min(bits, 53.0)) ||
         v < (t == DType::u8 ? 0 : -std::exp2(std::min(bits, 53.0)));
}

/// Rule 4. Kernels may flush subnormal results and intermediates to zero in their compute type; a factor of 256 may
/// follow.
double subnormal_allowance(DType t) { return !is_floating(t) ? 0 : t == DType::f64 ? 256 * 0x1p-1022 : 256 * 0x1p-126; }

/// Criteria for comparing a list of tensors.
struct Judge {
  const char* what;
  DType dtype;
  std::function<test::Tolerance(std::size_t)> tolerance;
  std::function<int64_t(std::size_t)> terms;
  bool near_range;
  bool pointwise = false;  ///< values of a pointwise operation
  /// Rule 5. In a type narrower than double a factor may underflow next to an infinite incoming gradient or weight, and
  /// 0 times infinity is NaN; then NaN and infinity count as equal.
  bool infinite_factor = false;
  /// Rule 6. PyTorch treats gradients that are 0 by definition, and those of empty tensors, specially: times infinity
  /// or NaN they stay 0, unlike a 0 in memory.
  bool zero_stays = false;
  double of_reference = 0;  ///< relative error of the reference itself
  bool normwise = false;    ///< errors are relative to the tensor's largest element
};

/// The spread of each element over runs with noise; infinite if it changes between numbers, infinities and NaN (rule 3:
/// such an element lies on an edge and is not compared; nor is finiteness if one spreads over far more than itself, as
/// second gradients of a standard deviation of equal numbers do). It is infinite as well if no run returns.
class Spread {
 public:
  explicit Spread(std::function<Tensors(Noise*)> f) : f_(std::move(f)) {}

  /// Noise of the type's ulp shows how a result depends on the values. Noise of double's ulp, scaled by the ratio,
  /// shows the effect of roundings inside an operation where terms cancel.
  void run(const Tensors& expected, double unit, int runs) {
    if (widths_.empty()) {
      widths_.resize(expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i)
        if (expected[i].defined()) widths_[i].resize(static_cast<std::size_t>(expected[i].numel()));
    }
    for (; done_ < runs; ++done_) {
      widen(expected, unit, 1);
      if (unit > kDouble) widen(expected, kDouble, unit / kDouble);
    }
  }
  double at(std::size_t tensor, std::size_t element) const {
    if (done_ > 0 && !returned_) return kInfinity;
    return tensor < widths_.size() && element < widths_[tensor].size() ? widths_[tensor][element] : 0;
  }
  /// Whether an element spreads over far more than itself.
  bool undetermined() const { return undetermined_; }

 private:
  static constexpr double kDouble = 0x1p-52;

  void widen(const Tensors& expected, double unit, double factor) {
    Noise noise(static_cast<std::uint64_t>(done_), unit);
    const std::optional<Tensors> other = with_noise(noise, f_);
    if (!other) return;
    returned_ = true;
    for (std::size_t i = 0; i < expected.size() && i < other->size(); ++i) {
      const Tensor &x = expected[i], &y = (*other)[i];
      if (!x.defined() || !y.defined() || y.sizes() != x.sizes()) continue;
      const auto a = x.to_vector<double>(), b = y.to_vector<double>();
      for (std::size_t e = 0; e < a.size(); ++e) grow(widths_[i][e], a[e], factor * distance(a[e], b[e]));
    }
  }
  void grow(double& width, double expected, double by) {
    width = std::max(width, by);
    undetermined_ |= std::isfinite(by) && by > kUndetermined && by > std::abs(expected) / 2;
  }
  static double distance(double a, double b) {
    if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
    const double d = std::abs(a - b);
    return std::isnan(d) ? kInfinity : d;
  }
  std::function<Tensors(Noise*)> f_;
  std::vector<std::vector<double>> widths_;
  int done_ = 0;
  bool returned_ = false, undetermined_ = false;
};

double rounded_to_range(DType t, double v) {
  const double most = largest_of(t);
  return is_floating(t) && t != DType::f64 && std::abs(v) > most * (1 + test::epsilon(t) / 4)
             ? std::copysign(kInfinity, v)
             : v;
}

/// Returns the worst element of tensor `i`, or an empty string.
std::string difference(const Tensor& actual, const Tensor& expected, std::size_t i, const Judge& judge,
                       const Spread& spread) {
  if (actual.sizes() != expected.sizes())
    return fmt::format("has shape {}, expected is {}", to_string(actual.sizes()), to_string(expected.sizes()));
  const auto a = actual.to_vector<double>(), x = expected.to_vector<double>();
  const DType t = actual.dtype();
  const int64_t terms = judge.terms(i);
  const test::Tolerance tolerance = judge.tolerance(i);
  // The parts of a second gradient cancel; their rounding errors are relative to the largest element.
  double largest = 0;
  if (judge.normwise)
    for (const double v : x) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  for (std::size_t e = 0; e < a.size(); ++e) {
    const double want = rounded_to_range(t, x[e]);
    if (a[e] == want || (std::isnan(a[e]) && std::isnan(want)) || beyond_integers(t, want)) continue;
    const double allowed = test::allowance(tolerance, t, std::isfinite(want) ? want : 0, terms) +
                           kNoiseFactor * (1 + std::sqrt(static_cast<double>(terms))) * spread.at(i, e) +
                           subnormal_allowance(t) + judge.of_reference * (std::isfinite(want) ? std::abs(want) : 0) +
                           tolerance.ulps * test::epsilon(t) * largest;
    if (std::abs(a[e] - want) <= allowed || allowed == kInfinity) continue;
    if (judge.infinite_factor && !std::isfinite(a[e]) && !std::isfinite(want) && std::isnan(a[e]) != std::isnan(want))
      continue;
    if (!std::isfinite(a[e]) && spread.undetermined()) continue;
    if (judge.normwise && !std::isfinite(a[e]) && std::max(largest, std::abs(want)) > std::sqrt(largest_of(t)))
      continue;  // rule 1
    if (judge.zero_stays && std::isnan(a[e]) && want == 0) continue;
    if (judge.near_range || (!judge.pointwise && std::isnan(a[e]) && std::isfinite(x[e]) && std::isinf(want))) continue;
    return fmt::format("element {} of {} is {:.9g}, expected {:.9g}, allowed is a difference of {:.3g}", e,
                       to_string(actual.sizes()), a[e], want, allowed);
  }
  return {};
}

std::string difference(const Tensors& actual, const Tensors& expected, const Judge& judge, const Spread& spread) {
  if (actual.size() != expected.size())
    return fmt::format("{} {}s, expected are {}", actual.size(), judge.what, expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!expected[i].defined() && !actual[i].defined()) continue;
    // A missing gradient is one of zeros.
    const Tensor& known = actual[i].defined() ? actual[i] : expected[i];
    const Tensor zero = zeros(known.sizes(), {.dtype = actual[i].defined() ? DType::f64 : judge.dtype});
    const std::string wrong = difference(actual[i].defined() ? actual[i] : zero,
                                         expected[i].defined() ? expected[i] : zero, i, judge, spread);
    if (!wrong.empty()) return fmt::format("{} {}: {}", judge.what, i, wrong);
  }
  return {};
}

/// Compares first with the error model alone, then with the measured effect of noise.
std::string compared(Tensors actual, Tensors expected, const Judge& judge, Spread spread) {
  // Without second gradients the list is empty.
  if (actual.empty()) actual.resize(expected.size());
  if (expected.empty()) expected.resize(actual.size());
  std::string wrong = difference(actual, expected, judge, spread);
  if (!is_floating(judge.dtype)) return wrong;
  for (const int runs : {kFewRuns, kManyRuns}) {
    if (wrong.empty()) return wrong;
    spread.run(expected, test::epsilon(judge.dtype), runs);
    wrong = difference(actual, expected, judge, spread);
  }
  return wrong;
}

int64_t most_terms(const Program& p, bool of_gradients) {
  int64_t n = 1;
  for (const Step& s : p.steps) n = std::max(n, of_gradients ? test::grad_terms_of(s.sample) : s.sample.terms);
  return n;
}

/// Returns the largest number of terms of the reference's sums: equal terms that round alike are off by half an ulp
/// each.
double longest_sum(const Program& p) {
  double most = 1;
  for (const Step& s : p.steps)
    for (const test::InputSpec& i : s.sample.inputs) most = std::max(most, static_cast<double>(i.sizes.numel()));
  return most;
}

std::string wrong_outputs(const Program& p, const Results& actual, const Tensors& expected, bool near_range) {
  const std::vector<OutputRule> rules = output_rules(p, actual.outputs);
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::vector<test::Output>& kinds = rules[i].step->op_case->outputs;
    const test::Output kind = kinds[std::min(rules[i].output, kinds.size() - 1)];
    const DType wanted = test::expected_type(kind, p.dtype), type = actual.outputs[i].dtype();
    if (kind != test::Output::any && type != wanted)
      return fmt::format("output {} is {}, expected {}", i, name_of(type), name_of(wanted));
  }
  const bool pointwise = !p.is_graph() && p.steps[0].op_case->pointwise;
  const auto tolerance = [&](std::size_t i) {
    return test::tolerance_of(*rules[i].step->op_case, rules[i].step->sample);
  };
  Judge judge{"output", p.dtype, tolerance, [&](std::size_t) { return most_terms(p, false); },
              near_range && !pointwise};
  judge.pointwise = pointwise;
  judge.of_reference = is_floating(p.dtype) ? longest_sum(p) * 0x1p-53 : 0;
  return compared(actual.outputs, expected, judge, Spread([&](Noise* noise) {
                    return has_reference(p) ? run(p, reference_leaves(p), true, noise)
                                            : run_levin(p, true, noise).outputs;
                  }));
}

/// Gradients are proportional to incoming gradients and to weights.
bool has_infinite_factor(const Program& p) {
  const auto infinite = [](const Leaf& f) {
    return std::ranges::any_of(f.memory, [](double v) { return std::isinf(v); });
  };
  return std::ranges::any_of(p.cotangents, infinite) ||
         std::ranges::any_of(p.leaves, [&](const Leaf& f) { return f.factor && infinite(f); });
}

bool has_zero_gradients(const Program& p) {
  return std::ranges::any_of(p.steps, [](const Step& s) { return s.op_case->zero_gradient; }) ||
         std::ranges::any_of(p.leaves, [](const Leaf& leaf) { return leaf.sizes.numel() == 0; });
}

/// Returns by how much the factors of gradients exceed what the cases assume: incoming gradients up to 1 and weights up
/// to 2.
double excess_of_factors(const Program& p) {
  const auto largest = [](const Leaf& f, double least) {
    for (const double v : f.memory)
      if (std::isfinite(v) && std::abs(v) > least) least = std::abs(v);
    return least;
  };
  double incoming = 1, weights = 1;
  for (const Leaf& g : p.cotangents) incoming = largest(g, incoming);
  for (const Leaf& f : p.leaves)
    if (f.factor) weights *= largest(f, 2) / 2;
  return incoming * weights;
}

std::string wrong_gradients(const Program& p, const Tensors& actual, const Tensors& expected, bool second,
                            bool near_range, bool pytorch) {
  const double excess = excess_of_factors(p);
  const auto tolerance = [&](std::size_t) {
    if (p.is_graph()) return test::Tolerance{.ulps = 64};
    test::Tolerance own = test::grad_tolerance_of(*p.steps[0].op_case, p.steps[0].sample);
    own.ulps *= second ? 2 : 1;
    own.scale *= excess;
    return own;
  };
  Judge judge{second ? "second gradient" : "gradient", p.dtype, tolerance,
              [&](std::size_t) { return most_terms(p, true); }, near_range};
  judge.infinite_factor = p.dtype != DType::f64 && has_infinite_factor(p);
  judge.normwise = second;
  judge.zero_stays = pytorch && has_zero_gradients(p);
  return compared(actual, expected, judge, Spread([&](Noise* noise) {
                    Results r = run_levin(p, true, noise);
                    return second ? r.second : r.first;
                  }));
}

std::string checked(const Program& p, const Peer& peer) {
  const Results actual = run_levin(p, false);
  std::optional<Results> expected;
  if (peer) {
    expected = peer(p);
    if (!expected) return {};
  } else {
    // Some operations on integers refuse the doubles of a reference run; they have no gradients.
    expected = !is_floating(p.dtype) && has_reference(p) ? actual : run_levin(p, true);
    if (has_reference(p)) {
      const no_grad guard;
      expected->outputs = run(p, reference_leaves(p), true);
    }
  }
  const bool near_range = near_the_range(p);
  if (std::string wrong = wrong_outputs(p, actual, expected->outputs, near_range); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_gradients(p, actual.first, expected->first, false, near_range, peer != nullptr);
      !wrong.empty())
    return wrong;
  if (std::string wrong = wrong_gradients(p, actual.second, expected->second, true, near_range, peer != nullptr);
      !wrong.empty())
    return wrong;
  if (peer || p.dtype != DType::f64 || p.cotangents.empty()) return {};
  return wrong_slopes(p, actual, *expected);
}

}  // namespace

std::string check(const Program& p, const Peer& peer) {
  const std::size_t before = cpu_allocator::guard_violations();
  cpu_allocator::set_guards(true);
  std::string wrong = test::guarded([&] { return checked(p, peer); });
  cpu_allocator::set_guards(false);
  if (wrong.empty() && cpu_allocator::guard_violations() != before) wrong = "writes outside of a buffer";
  return wrong;
}

}  // namespace levin::fuzz
