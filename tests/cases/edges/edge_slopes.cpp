// Gradients at the edges of the formulas' domains.

#include "cases/cases.h"
#include "cases/edges/edges.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::test {

namespace {

using Line = EdgeValues;

/// Elements next to NaN and infinity keep their values and gradients.
std::vector<OpCase> beside_nan() {
  const Line values = {kEdgeNan,       1.5,  -1.0,     -3.0,     0.25,   -0.5, 2.0,
                       -kEdgeInfinity, -2.0, kEdgeNan, kEdgeNan, -0.125, 4.0};
  std::vector<OpCase> list;
  const auto add = [&](const char* name, Unary f, double (*slope)(double), double (*second)(double)) {
    const auto op = [f](const Tensors& x) -> Tensors { return {f(x[0])}; };
    list.push_back(edge_case(fmt::format("{}_beside_nan", name), slopes_of(op), pointwise(slope), {}));
    list.push_back(edge_case(fmt::format("{}_twice_beside_nan", name), slopes_of([op](const Tensors& x) -> Tensors {
                               const Tensor y = op(x)[0];
                               return grad(Tensors{y}, Tensors{x[0]}, {.create_graph = true}, Tensors{ones_like(y)});
                             }),
                             pointwise(second), {}, kWideFloats));
  };
  add(
      "elu", [](const Tensor& x) { return elu(x, 1.5); }, [](double x) { return x > 0 ? 1.0 : 1.5 * std::exp(x); },
      [](double x) { return x > 0 ? 0.0 : 1.5 * std::exp(x); });
  add(
      "expm1", expm1, [](double x) { return std::exp(x); }, [](double x) { return std::exp(x); });
  for (OpCase& c : list) {
    for (const Shape& sizes : {Shape{13}, {31}, {3, 13}}) c.samples.push_back({.inputs = {values_of(sizes, values)}});
    c.tolerance = {.ulps = 8};
  }
  return list;
}

/// The gradient of an extremum of all elements or along an axis, shared by the elements equal to `extremum`.
Tensor shared_by_ties(const Tensor& x, double extremum) {
  Line v = x.to_vector<double>();
  double ties = 0;
  const auto is_tie = [&](double e) { return std::isnan(extremum) ? std::isnan(e) : e == extremum; };
  for (const double e : v) ties += is_tie(e);
  for (double& e : v) e = is_tie(e) ? 1 / ties : 0.0;
  return from_data(v, x.sizes());
}

std::vector<OpCase> extrema() {
  std::vector<OpCase> list;
  const Line with_nan = {1, kEdgeNan, -3, 3, 3, kEdgeNan, 0};
  const std::vector<Sample> nan_samples = {{.inputs = {values_of({7}, with_nan)}},
                                           {.inputs = {values_of({33}, with_nan)}}};
  for (const auto& [name, f] : {std::pair{"max", Unary([](const Tensor& x) { return max(x); })},
                                std::pair{"min", Unary([](const Tensor& x) { return min(x); })}})
    list.push_back(edge_case(
        fmt::format("{}_with_nan", name), slopes_of([f](const Tensors& x) -> Tensors { return {f(x[0])}; }),
        [](const Tensors& x) -> Tensors { return {shared_by_ties(x[0], kEdgeNan)}; }, nan_samples));
  // sign(NaN) is 0, so the gradient is 0.
  for (const double p : {kEdgeInfinity, -kEdgeInfinity})
    list.push_back(edge_case(p > 0 ? "norm_inf_with_nan" : "norm_minus_inf_with_nan",
                             slopes_of([p](const Tensors& x) -> Tensors { return {norm(x[0], p)}; }),
                             pointwise([](double) { return 0.0; }), nan_samples));
  for (OpCase& c : list) c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};

  // More elements share the gradient than a 16-bit float can represent.
  constexpr int64_t kTies = 70'000;
  using Extremum = Tensor (*)(const Tensor&);
  for (const auto& [name, f] :
       {std::pair{"amax", Extremum([](const Tensor& x) { return amax(x, {0}); })},
        std::pair{"amin", Extremum([](const Tensor& x) { return amin(x, {0}); })},
        std::pair{"max", Extremum([](const Tensor& x) { return max(x); })},
        std::pair{"min", Extremum([](const Tensor& x) { return min(x); })},
        std::pair{"norm_inf", Extremum([](const Tensor& x) { return norm(x, kEdgeInfinity); })}}) {
    OpCase c = edge_case(
        fmt::format("{}_of_many_ties", name), slopes_of([f](const Tensors& x) -> Tensors { return {f(x[0])}; }),
        [](const Tensors& x) -> Tensors { return {shared_by_ties(x[0], 2.0)}; },
        {{.inputs = {values_of({kTies}, {2.0})}}}, kRoundedFloats);
    c.layouts = {Layout::contiguous};
    list.push_back(c);
  }
  return list;
}

/// logsumexp with an infinite maximum, and log-probabilities of more samples than a float16 can represent.
std::vector<OpCase> infinite_sums() {
  OpCase infinite = edge_case(
      "logsumexp_beside_infinity", slopes_of([](const Tensors& x) -> Tensors { return {logsumexp(x[0], {1})}; }),
      [](const Tensors& x) -> Tensors {
        Line v = x[0].to_vector<double>();
        for (double& e : v) e = std::isinf(e) ? kEdgeNan : 0.0;
        return {from_data(v, x[0].sizes())};
      },
      {{.inputs = {values_of({5, 3}, {3e38, kEdgeInfinity, -2.0})}}}, {DType::f64, DType::f32, DType::bf16});
  infinite.layouts = {Layout::contiguous};

  constexpr int64_t kSamples = 70'000;
  const std::vector<Sample> many = {{.inputs = {values_of({kSamples, 1}, {-0.5}), index_input({kSamples}, 1)}}};
  OpCase nll = edge_case(
      "nll_loss_of_many_samples", [](const Tensors& x) -> Tensors { return {nll_loss(x[0], x[1])}; },
      [](const Tensors&) -> Tensors { return {from_data(Line{0.5}, {})}; }, many, kRoundedFloats);
  nll.layouts = {Layout::contiguous};
  return {infinite, nll};
}

double edge_logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The gradient of a composed binary cross-entropy stays accurate for large logits of either sign.
std::vector<OpCase> far_logits() {
  const std::vector<Sample> samples = {{.inputs = {values_of({33}, {-20, 20, -60, 60, -1, 3}),
                                                   values_of({33}, {0, 1, 0, 1, 1}), values_of({33}, {3, 0.5, 2})}}};
  std::vector<OpCase> list = {
      edge_case("bce_pos_weight_of_far_logits", slopes_of([](const Tensors& x) -> Tensors {
                  return {bce_with_logits(x[0], x[1].detach(),
                                          {.pos_weight = x[2].detach(), .reduction = Reduction::none})};
                }),
                nullptr, samples),
      edge_case("bce_weight_of_far_logits", slopes_of([](const Tensors& x) -> Tensors {
                  return {
                      bce_with_logits(x[0], x[1].detach(), {.weight = x[2].detach(), .reduction = Reduction::none})};
                }),
                nullptr, samples)};
  for (OpCase& c : list) {
    const bool positive = c.name.find("pos_weight") != std::string::npos;
    c.reference = pointwise([=](double x, double t, double w) {
      return positive ? (1 - t) * edge_logistic(x) - w * t * edge_logistic(-x)
                      : w * ((1 - t) * edge_logistic(x) - t * edge_logistic(-x));
    });
    for (InputSpec& i : c.samples[0].inputs) i.differentiable = false;
    const TensorFunction all = c.op;
    c.op = [all](const Tensors& x) -> Tensors { return {all(x)[0]}; };
    c.tolerance = {.ulps = 16};
  }
  return list;
}

/// Derivatives of the angle of (x, y), also if x^2 + y^2 overflows or underflows; 0 at the origin.
std::vector<OpCase> angles() {
  const Line ys = {0, 1e-23, -3, 1e-200, 0, 5, 2e30, -1e-6, kEdgeInfinity},
             xs = {0, 0, 4, 0, 2e-5, -2e-8, 1e30, -1e-6, 1};
  const auto op = slopes_of([](const Tensors& x) -> Tensors { return {atan2(x[0], x[1])}; });
  const auto slope = [](double side, double y, double x) {
    const double h = std::hypot(y, x);
    return h == 0 ? 0.0 : side / h / h;
  };
  OpCase c = edge_case(
      "atan2_slopes", op,
      [slope](const Tensors& in) -> Tensors {
        const Line y = in[0].to_vector<double>(), x = in[1].to_vector<double>();
        Line dy, dx;
        for (std::size_t i = 0; i < y.size(); ++i)
          dy.push_back(slope(x[i], y[i], x[i])), dx.push_back(slope(-y[i], y[i], x[i]));
        return {from_data(dy, in[0].sizes()), from_data(dx, in[0].sizes())};
      },
      {{.inputs = {values_of({9}, ys), values_of({9}, xs)}}, {.inputs = {values_of({33}, ys), values_of({33}, xs)}}});
  c.layouts = {Layout::contiguous, Layout::sliced};
  c.tolerance = {.ulps = 8};
  OpCase mixed = edge_case("atan2_slopes_beside_bool", op,
                           [slope](const Tensors& in) -> Tensors {
                             const Line y = in[0].to_vector<double>(), x = in[1].to_vector<double>();
                             Line dy;
                             for (std::size_t i = 0; i < y.size(); ++i) dy.push_back(slope(x[i], y[i], x[i]));
                             return {from_data(dy, in[0].sizes())};
                           },
                           {{.inputs = {values_of({4}, {0.5, -2, 3, 1}), values_of({4}, {1, 1, 0}, kBool)}}});
  mixed.layouts = {Layout::contiguous};
  mixed.tolerance = {.ulps = 8};
  return {c, mixed};
}

/// Gradients have the precision of the result's type even if an operand's type is narrower. Checks the last gradient,
/// which has that type.
std::vector<OpCase> narrow_operands() {
  std::vector<OpCase> list;
  const auto add = [&](const char* name, std::vector<Sample> samples, TensorFunction f,
                       std::function<double(double, double, double)> slope) {
    const TensorFunction slopes = slopes_of(std::move(f));
    OpCase c = edge_case(
        name, [slopes](const Tensors& x) -> Tensors { return {slopes(x).back()}; },
        [slope](const Tensors& x) -> Tensors {
          const Line a = x[0].to_vector<double>(), b = x[1].to_vector<double>(), d = x.back().to_vector<double>();
          Line r;
          for (std::size_t i = 0; i < a.size(); ++i) r.push_back(slope(a[i], b[i], d[i]));
          return {from_data(r, x[0].sizes())};
        },
        std::move(samples), {DType::f64});
    c.outputs = {Output::same};
    c.tolerance = {.ulps = 16};
    list.push_back(c);
  };
  for (const DType narrow : {kInt32, kHalf, kFloat32})
    add(
        fmt::format("pow_of_{}", name_of(narrow)).c_str(),
        {{.inputs = {values_of({7}, {3, 2, 7, 5}, narrow), values_of({7}, {1.5, 0.1, -2})}}},
        [](const Tensors& x) -> Tensors { return {pow(x[0], x[1])}; },
        [](double a, double b, double) { return std::pow(a, b) * std::log(a); });
  add(
      "pow_by_float16", {{.inputs = {values_of({5}, {0.1, 1.7, -2.3}, kHalf), values_of({5}, {3, 2.5})}}},
      [](const Tensors& x) -> Tensors { return {pow(x[1], x[0])}; },
      [](double e, double b, double) { return e * std::pow(b, e - 1); });
  add(
      "lerp_by_float16",
      {{.inputs = {values_of({5}, {0.1, 0.7, -0.3}, kHalf), values_of({5}, {1, 2}), values_of({5}, {3, 2.5})}}},
      [](const Tensors& x) -> Tensors { return {lerp(x[2], x[1], x[0])}; },
      [](double w, double, double) { return 1 - w; });
  add(
      "lerp_of_int8",
      {{.inputs = {values_of({5}, {100, -100, 3}, kInt8), values_of({5}, {-100, 100, 4}, kInt8),
                   values_of({5}, {0.25, 0.75})}}},
      [](const Tensors& x) -> Tensors { return {lerp(x[0], x[1], x[2])}; },
      [](double a, double b, double) { return b - a; });
  const TensorFunction quotients = slopes_of([](const Tensors& x) -> Tensors { return {addcdiv(x[0], x[1], x[2])}; });
  OpCase c = edge_case(
      "addcdiv_by_float16", [quotients](const Tensors& x) -> Tensors { return {quotients(x)[2]}; },
      [](const Tensors& in) -> Tensors {
        const Line b = in[1].to_vector<double>(), d = in[2].to_vector<double>();
        Line r;
        for (std::size_t i = 0; i < b.size(); ++i) r.push_back(-b[i] / d[i] / d[i]);
        return {from_data(r, in[2].sizes())};
      },
      {{.inputs = {{.sizes = {33}},
                   {.sizes = {33}, .dtype = kHalf},
                   {.sizes = {33}, .values = uniform(0.3, 2), .dtype = kHalf}}}},
      {DType::f64});
  c.tolerance = {.ulps = 0.51};  // rounded once
  list.push_back(c);
  return list;
}

}  // namespace

std::vector<OpCase> edge_slope_cases() {
  std::vector<OpCase> all;
  for (const auto& family : {beside_nan(), extrema(), infinite_sums(), far_logits(), angles(), narrow_operands()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

}  // namespace levin::test
