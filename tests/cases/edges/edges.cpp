// Values at the edges of the formulas' domains.

#include "cases/edges/edges.h"
#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <cmath>

namespace levin::test {

namespace {

using Line = EdgeValues;

/// 1 / f(x) shows the sign of a zero.
OpCase signed_zeros() {
  const std::vector<Unary> functions = {neg,
                                        sin,
                                        tan,
                                        [](const Tensor& x) { return tanh(x); },
                                        erf,
                                        expm1,
                                        log1p,
                                        sqrt,
                                        floor,
                                        ceil,
                                        round,
                                        trunc,
                                        silu,
                                        [](const Tensor& x) { return elu(x, 1.5); },
                                        [](const Tensor& x) { return leaky_relu(x, 0.1); },
                                        [](const Tensor& x) { return gelu(x); },
                                        [](const Tensor& x) { return gelu(x, Approximate::tanh); }};
  OpCase c = edge_case(
      "signed_zeros",
      [functions](const Tensors& x) {
        Tensors results;
        for (const Unary f : functions) results.push_back(rdiv(f(x[0]), 1));
        return results;
      },
      [n = functions.size()](const Tensors& x) {
        Tensors results;
        for (std::size_t i = 0; i < n; ++i) {
          Line v = x[0].to_vector<double>();
          for (double& e : v) e = std::copysign(kEdgeInfinity, i == 0 ? -e : e);
          results.push_back(from_data(v, x[0].sizes()));
        }
        return results;
      },
      {}, kFloatTypes);
  for (const Shape& sizes : {Shape{}, {3}, {31}, {5, 7}})
    c.samples.push_back({.inputs = {values_of(sizes, {-0.0, 0.0, -0.0, -0.0})}});
  c.outputs = {Output::same};
  return c;
}

/// Cross-entropy of logits near 1000, where log(sum(exp(x))) loses the digits of the loss.
std::vector<OpCase> large_logits() {
  std::vector<Sample> samples;
  const Values large = shifted(uniform(-4, 4), 1000);
  for (const Shape& sizes : {Shape{5, 7}, {6, 3, 5}, {2, 2500}}) {
    Shape labels = sizes;
    labels.erase(1);
    samples.push_back({.inputs = {{.sizes = sizes, .values = large}, index_input(labels, sizes[1])}});
  }
  /// Calls f(position of each class, label) for every sample.
  const auto each = [](const Tensors& x, auto&& f) {
    const int64_t classes = x[0].size(1), spatial = x[0].dim() > 2 ? x[0].size(2) : 1;
    const std::vector<int64_t> labels = x[1].to_vector<int64_t>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const int64_t s = static_cast<int64_t>(i);
      std::vector<std::size_t> places;
      for (int64_t c = 0; c < classes; ++c)
        places.push_back(static_cast<std::size_t>((s / spatial * classes + c) * spatial + s % spatial));
      f(places, static_cast<std::size_t>(labels[i]));
    }
  };
  const auto shifted_sum = [](const Line& v, const std::vector<std::size_t>& places, double& top) {
    top = -kEdgeInfinity;
    for (const std::size_t p : places) top = std::max(top, v[p]);
    double sum = 0;
    for (const std::size_t p : places) sum += std::exp(v[p] - top);
    return sum;
  };
  const TensorFunction op = [](const Tensors& x) -> Tensors {
    return {cross_entropy(x[0], x[1], {.reduction = Reduction::none})};
  };
  OpCase losses = edge_case(
      "cross_entropy_of_large_logits", op,
      [=](const Tensors& x) -> Tensors {
        const Line v = x[0].to_vector<double>();
        Line result;
        each(x, [&](const std::vector<std::size_t>& places, std::size_t label) {
          double top = 0;
          const double sum = shifted_sum(v, places, top);
          result.push_back((top - v[places[label]]) + std::log(sum));
        });
        return {from_data(result, x[1].sizes())};
      },
      samples, kWideFloats);
  losses.tolerance = {.ulps = 16};
  OpCase gradients = edge_case(
      "cross_entropy_slopes_of_large_logits", slopes_of(op),
      [=](const Tensors& x) -> Tensors {
        const Line v = x[0].to_vector<double>();
        Line result(v.size());
        each(x, [&](const std::vector<std::size_t>& places, std::size_t label) {
          double top = 0;
          const double sum = shifted_sum(v, places, top);
          for (std::size_t c = 0; c < places.size(); ++c)
            result[places[c]] = std::exp(v[places[c]] - top) / sum - (c == label ? 1.0 : 0.0);
        });
        return {from_data(result, x[0].sizes())};
      },
      samples, kWideFloats);
  gradients.tolerance = {.ulps = 16, .scale = 1};
  return {losses, gradients};
}

constexpr int64_t kBig = (int64_t{1} << 53) + 1;

/// Factors and bounds above 2^53, corrected by the next smaller one, which is exact in double.
std::vector<OpCase> big_integers() {
  std::vector<OpCase> list;
  const auto make = [&](const char* name, TensorFunction op, std::function<double(double, double, double)> f) {
    list.push_back(edge_case(name, std::move(op), pointwise(std::move(f)),
                             {{.inputs = {{.sizes = {31}, .values = integers(-9, 9)},
                                          {.sizes = {31}, .values = integers(-9, 9)},
                                          {.sizes = {31}, .values = integers(-9, 9)}}}},
                             {DType::i64}));
  };
  make(
      "add_of_a_big_multiple",
      [](const Tensors& x) -> Tensors { return {sub(add(x[0], x[1], kBig), mul(x[1], kBig - 1))}; },
      [](double a, double b, double) { return a + b; });
  make(
      "sub_of_a_big_multiple",
      [](const Tensors& x) -> Tensors { return {add(sub(x[0], x[1], kBig), mul(x[1], kBig - 1))}; },
      [](double a, double b, double) { return a - b; });
  make(
      "add_in_place_of_a_big_multiple",
      [](const Tensors& x) -> Tensors {
        const Tensor y = clone(x[0]);
        y.add_(x[1], -kBig);
        return {add(y, mul(x[1], kBig - 1))};
      },
      [](double a, double b, double) { return a - b; });
  make(
      "addcmul_of_a_big_multiple",
      [](const Tensors& x) -> Tensors {
        return {sub(addcmul(x[0], x[1], x[2], kBig), mul(mul(x[1], x[2]), kBig - 1))};
      },
      [](double a, double b, double c) { return a + b * c; });
  make(
      "addmm_of_a_big_multiple",
      [](const Tensors& x) -> Tensors {
        const Tensor a = reshape(x[0], {31, 1}), b = reshape(x[1], {1, 31});
        return {sub(addmm(x[2], a, b, 2, kBig), mul(mm(a, b), kBig - 1))};
      },
      nullptr);
  list.back().reference = [](const Tensors& x) -> Tensors {
    const Line a = x[0].to_vector<double>(), b = x[1].to_vector<double>(), bias = x[2].to_vector<double>();
    Line y;
    for (const double v : a)
      for (std::size_t j = 0; j < b.size(); ++j) y.push_back(2 * bias[j] + v * b[j]);
    return {from_data(y, {31, 31})};
  };
  make(
      "clamp_to_a_big_bound",
      [](const Tensors& x) -> Tensors {
        const Tensor edited = clone(x[0]);
        edited.clamp_(kBig + 2, std::nullopt);
        return {sub(clamp(x[0], kBig, std::nullopt), kBig - 1), add(clamp(x[0], std::nullopt, -kBig), kBig - 1),
                sub(edited, kBig - 1)};
      },
      nullptr);
  list.back().reference = [](const Tensors& x) -> Tensors {
    Tensors results;
    for (const double v : {1.0, -1.0, 3.0}) results.push_back(full(x[0].sizes(), v, {.dtype = kFloat64}));
    return results;
  };
  return list;
}

/// Converts numbers to bool that float32 would round to zero.
OpCase small_truths() {
  return edge_case(
      "truth_of_small_numbers",
      [](const Tensors& x) -> Tensors {
        return {to(x[0], kBool), logical_not(x[0]), any(x[0]), all(x[0]), logical_and(x[0], x[0]), ne(x[0], 0)};
      },
      [](const Tensors& in) -> Tensors {
        const Line v = in[0].to_vector<double>();
        Line truths, opposites;
        bool some = false, every = true;
        for (const double e : v) {
          truths.push_back(e != 0), opposites.push_back(e == 0);
          some |= e != 0, every &= e != 0;
        }
        const Tensor t = from_data(truths, in[0].sizes());
        return {t,
                from_data(opposites, in[0].sizes()),
                from_data(Line{double(some)}, {}),
                from_data(Line{double(every)}, {}),
                t,
                t};
      },
      {{.inputs = {values_of({5}, {1e-50, 0, 1e-320, -1e-60, -0.0})}}, {.inputs = {values_of({33}, {1e-50, 1e-40})}}});
}

/// Momentum 1 takes the batch's statistics, however small the running ones are.
OpCase new_statistics() {
  OpCase c = edge_case(
      "batch_norm_momentum_1",
      [](const Tensors& x) -> Tensors {
        const Tensor mean = full({x[0].size(1)}, -3.0, like(x[0])), var = ones({x[0].size(1)}, like(x[0]));
        batch_norm(x[0], mean, var, {}, {}, {.training = true, .momentum = 1.0});
        return {mean, var};
      },
      [](const Tensors& in) -> Tensors {
        const Line v = in[0].to_vector<double>();
        const std::size_t channels = static_cast<std::size_t>(in[0].size(1)), n = v.size() / channels;
        Line means(channels), vars(channels);
        for (std::size_t k = 0; k < channels; ++k) {
          for (std::size_t b = 0; b < n; ++b) means[k] += v[b * channels + k] / static_cast<double>(n);
          for (std::size_t b = 0; b < n; ++b)
            vars[k] += std::pow(v[b * channels + k] - means[k], 2) / static_cast<double>(n - 1);
        }
        return {from_data(means, {in[0].size(1)}), from_data(vars, {in[0].size(1)})};
      },
      {{.inputs = {{.sizes = {6, 3}, .values = uniform(1e-4, 4e-4)}}}}, {DType::f64, DType::f32, DType::bf16});
  c.layouts = {Layout::contiguous};
  c.tolerance = {.ulps = 16};
  return c;
}

}  // namespace

std::vector<OpCase> edge_cases() {
  std::vector<OpCase> all = {signed_zeros(), small_truths(), new_statistics()};
  for (const auto& family : {large_logits(), big_integers()}) all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace levin::test
