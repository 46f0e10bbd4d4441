#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

namespace levin::test {

namespace {

using Line = std::vector<double>;

double value_at(const Tensor& t, int64_t i, double otherwise) {
  return t.defined() ? t.to_vector<double>()[static_cast<std::size_t>(i)] : otherwise;
}

struct Moments {
  double mean = 0.0, var = 0.0;
  int64_t count = 0;
};

/// Returns mean and biased variance of group `g` of `groups`; element i belongs to group_of(i). The mean of equal
/// numbers is exact, so that their distance from it is 0, which an infinite weight makes NaN.
template <class F>
Moments moments_of(const Line& v, int64_t g, F&& group_of) {
  Moments m;
  long double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i)
    if (group_of(static_cast<int64_t>(i)) == g) sum += v[i], ++m.count;
  m.mean = static_cast<double>(sum / static_cast<long double>(m.count));
  for (std::size_t i = 0; i < v.size(); ++i)
    if (group_of(static_cast<int64_t>(i)) == g) m.var += (v[i] - m.mean) * (v[i] - m.mean);
  m.var /= static_cast<double>(m.count);
  return m;
}

Tensor at_or_none(const Tensors& x, std::size_t i) { return i < x.size() ? x[i] : Tensor(); }

/// Inputs: x, weight, bias, running mean, running var (the last two or four are optional). Returns y and the updated
/// running statistics.
Tensors batch_norm_reference(const Tensors& in, bool training, double momentum, double eps = 1e-5) {
  const Tensor &x = in[0], weight = at_or_none(in, 1), bias = at_or_none(in, 2);
  const Line v = x.to_vector<double>();
  const int64_t channels = x.size(1), spatial = x.numel() / std::max<int64_t>(1, x.size(0) * channels);
  Line y(v.size()), means, vars;
  const auto channel_of = [&](int64_t i) { return i / spatial % channels; };
  for (int64_t c = 0; c < channels; ++c) {
    Moments m{value_at(at_or_none(in, 3), c, 0.0), value_at(at_or_none(in, 4), c, 1.0), 0};
    if (training) {
      m = moments_of(v, c, channel_of);
      if (in.size() > 4) {
        const double unbiased = m.var * static_cast<double>(m.count) / static_cast<double>(m.count - 1);
        means.push_back((1 - momentum) * value_at(in[3], c, 0.0) + momentum * m.mean);
        vars.push_back((1 - momentum) * value_at(in[4], c, 0.0) + momentum * unbiased);
      }
    }
    for (std::size_t i = 0; i < v.size(); ++i)
      if (channel_of(static_cast<int64_t>(i)) == c)
        y[i] = (v[i] - m.mean) / std::sqrt(m.var + eps) * value_at(weight, c, 1.0) + value_at(bias, c, 0.0);
  }
  Tensors result{from_data(y, x.sizes())};
  if (training && in.size() > 4) {
    result.push_back(from_data(means, {channels}));
    result.push_back(from_data(vars, {channels}));
  }
  return result;
}

Sample batch_sample(const Shape& sizes, int parameters) {
  const Shape channels{sizes[1]};
  Sample s{.inputs = {{.sizes = sizes}}};
  if (parameters > 0) s.inputs.push_back({.sizes = channels, .values = uniform(0.5, 1.5)});
  if (parameters > 1) s.inputs.push_back({.sizes = channels});
  if (parameters > 2) {
    s.inputs.push_back({.sizes = channels, .differentiable = false});
    s.inputs.push_back({.sizes = channels, .values = uniform(0.5, 2), .differentiable = false});
  }
  // Means divide the error of their sums; the gradients of the parameters are sums over a channel.
  s.grad_terms = std::max<int64_t>(1, sizes.numel() / std::max<int64_t>(1, sizes[1]));
  s.label = fmt::format("{} parameters", parameters);
  return s;
}

/// Returns PyTorch's expression for training with the sample's number of inputs.
std::string torch_of_batch(const Sample& s) {
  return s.inputs.size() > 4
             ? "(lambda m, v: (F.batch_norm(x0, m, v, x1, x2, True, 0.3), m, v))(x3.clone(), x4.clone())"
         : s.inputs.size() > 2 ? "F.batch_norm(x0, None, None, x1, x2, True)"
         : s.inputs.size() > 1 ? "F.batch_norm(x0, None, None, x1, None, True)"
                               : "F.batch_norm(x0, None, None, None, None, True)";
}

/// Draws at least two values per channel, which training needs.
Sample random_batch(Draw& d, bool training) {
  Shape x{d.size(8, !training), d.size(12, false)};
  for (const int64_t n : d.shape(0, 2, 30)) x.push_back(std::max<int64_t>(n, 1));
  if (training && x.numel() / x[1] < 2) x[0] = 2;
  return batch_sample(x, training ? d.of(std::array{2, 0, 1, 4}) : 4);
}

Sample layer_sample(const Shape& sizes, int axes, int parameters, double eps = 1e-5);

Sample random_layer(Draw& d) {
  Shape x = d.shape(1);
  const int axes = static_cast<int>(d.between(1, x.size()));
  for (int a = x.size() - axes; a < x.size(); ++a) x[a] = std::max<int64_t>(1, x[a]);
  return layer_sample(x, axes, static_cast<int>(d.below(3)), d.chance(30) ? 0.25 : 1e-5);
}

OpCase batch_case(bool training) {
  OpCase c{.name = training ? "batch_norm" : "batch_norm_eval"};
  const auto op_with = [=](double eps) -> TensorFunction {
    const BatchNormOptions options{.training = training, .momentum = 0.3, .eps = eps};
    return [=](const Tensors& x) -> Tensors {
      if (!training) return {batch_norm(x[0], x[3], x[4], x[1], x[2], options)};
      if (x.size() < 5) return {batch_norm(x[0], {}, {}, at_or_none(x, 1), at_or_none(x, 2), options)};
      const Tensor mean = x[3].clone(), var = x[4].clone();
      const Tensor y = batch_norm(x[0], mean, var, x[1], x[2], options);
      return {y, mean, var};
    };
  };
  c.op = op_with(1e-5);
  c.reference = [=](const Tensors& x) { return batch_norm_reference(x, training, 0.3); };
  if (training)
    c.samples = {batch_sample({4, 3, 5}, 2),    batch_sample({6, 4}, 2),    batch_sample({2, 3, 2, 2}, 0),
                 batch_sample({7, 5}, 0),       batch_sample({4, 2, 3}, 1), batch_sample({5, 70}, 4),
                 batch_sample({4, 3, 2, 2}, 4), batch_sample({3, 1, 17}, 4)};
  else
    c.samples = {batch_sample({4, 3, 5}, 4), batch_sample({6, 4}, 4), batch_sample({1, 3, 2, 2}, 4),
                 batch_sample({0, 3}, 4)};
  c.draw = [training](Draw& d) {
    Sample s = random_batch(d, training);
    if (!training) return s;
    s.torch = torch_of_batch(s);
    return s;
  };
  c.large = {batch_sample({32, 20, 11, 11}, 4), batch_sample({500, 130}, 4)};
  c.torch = "F.batch_norm(x0, x3, x4, x1, x2, training=False)";
  if (training)
    for (Sample& s : c.samples)
      s.torch = torch_of_batch(s);
  const auto with_eps = [=](Sample s, const char* torch) {
    s.label += ", eps 0.25";
    s.op = op_with(0.25);
    s.reference = [=](const Tensors& x) { return batch_norm_reference(x, training, 0.3, 0.25); };
    s.torch = torch;
    return s;
  };
  if (training) {
    c.samples.push_back(with_eps(batch_sample({4, 3, 5}, 2), "F.batch_norm(x0, None, None, x1, x2, True, eps=0.25)"));
    c.samples.push_back(with_eps(batch_sample({5, 7}, 4),
                                 "(lambda m, v: (F.batch_norm(x0, m, v, x1, x2, True, 0.3, 0.25), m, v))"
                                 "(x3.clone(), x4.clone())"));
  } else {
    c.samples.push_back(with_eps(batch_sample({4, 3, 5}, 4), "F.batch_norm(x0, x3, x4, x1, x2, eps=0.25)"));
  }
  c.large.push_back(with_eps(batch_sample({50, 33, 5}, 4), "-"));
  c.dtypes = kFloatTypes;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};  // a variance of 0 leaves no accuracy
  c.tolerance = {.ulps = 4, .scale = 4};
  c.grad_tolerance = {.ulps = 32, .scale = 2};
  c.grad_dtypes = kRoundedFloats;
  c.bench = {batch_sample({64, 128, 14, 14}, 4), batch_sample({128, 512}, 4)};
  if (training)
    c.errors = {{"[batch_norm] x is (3,), but (batch, channels, ...) is needed",
                 [=] { batch_norm(ones({3}), {}, {}); }},
                {"more than one value a channel",
                 [=] {
                   batch_norm(ones({1, 3}), {}, {}, {}, {}, {.training = true});
                 }},
                {"[batch_norm] weight is (4,), but x of (2, 3) needs (3,)",
                 [=] {
                   batch_norm(ones({2, 3}), {}, {}, ones({4}));
                 }},
                {"[batch_norm] bias is float64, x is float32",
                 [=] {
                   batch_norm(ones({2, 3}), {}, {}, {}, ones({3}, {.dtype = kFloat64}));
                 }},
                {"evaluation needs running_mean", [=] {
                   batch_norm(ones({2, 3}), {}, {});
                 }}};
  return c;
}

/// A 16-bit x with float32 parameters and statistics, as under autocast.
OpCase mixed_batch_case() {
  OpCase c = batch_case(true);
  c.name = "batch_norm_mixed";
  c.op = [](const Tensors& in) -> Tensors {
    Tensors x = in;
    const BatchNormOptions options{.training = true, .momentum = 0.3};
    const DType parameters = size_of(x[0].dtype()) == 2 ? kFloat32 : x[0].dtype();
    for (std::size_t i = 1; i < x.size(); ++i) x[i] = x[i].to(parameters);
    if (x.size() < 5) return {batch_norm(x[0], {}, {}, at_or_none(x, 1), at_or_none(x, 2), options)};
    const Tensor mean = x[3].clone(), var = x[4].clone();
    const Tensor y = batch_norm(x[0], mean, var, x[1], x[2], options);
    return {y, mean, var};
  };
  c.outputs = {Output::same, Output::any};
  c.draw = [](Draw& d) {
    Sample s = random_batch(d, true);
    s.torch = "-";
    return s;
  };
  for (Sample& s : c.samples) s.torch = "-";
  c.dtypes = {DType::f16, DType::bf16};
  c.errors = {{"[batch_norm] bias is float16, x is float16 and other parameters are float32",
               [] {
                 batch_norm(ones({2, 3}, {.dtype = kHalf}), {}, {}, ones({3}), ones({3}, {.dtype = kHalf}));
               }},
              {"[batch_norm] weight is float64, x is float16", [] {
                 batch_norm(ones({2, 3}, {.dtype = kHalf}), {}, {}, ones({3}, {.dtype = kFloat64}));
               }}};
  c.bench = {};
  c.large = {};
  return c;
}

Tensors layer_norm_reference(const Tensors& in, int64_t n, double eps) {
  const Tensor &x = in[0], weight = at_or_none(in, 1), bias = at_or_none(in, 2);
  const Line v = x.to_vector<double>(),
             w = weight.defined() ? weight.to_vector<double>() : Line(static_cast<std::size_t>(n), 1.0),
             b = bias.defined() ? bias.to_vector<double>() : Line(static_cast<std::size_t>(n), 0.0);
  Line y;
  for (std::size_t row = 0; row * w.size() < v.size(); ++row) {
    const Line line(v.begin() + static_cast<std::ptrdiff_t>(row * w.size()),
                    v.begin() + static_cast<std::ptrdiff_t>((row + 1) * w.size()));
    const Moments m = moments_of(line, 0, [](int64_t) { return 0; });
    for (std::size_t i = 0; i < line.size(); ++i)
      y.push_back((line[i] - m.mean) / std::sqrt(m.var + eps) * w[i] + b[i]);
  }
  return {from_data(y, x.sizes())};
}

Sample layer_sample(const Shape& sizes, int axes, int parameters, double eps) {
  const Shape normalized(sizes.end() - axes, sizes.end());
  Sample s{.inputs = {{.sizes = sizes}}};
  if (parameters > 0) s.inputs.push_back({.sizes = normalized, .values = uniform(0.5, 1.5)});
  if (parameters > 1) s.inputs.push_back({.sizes = normalized});
  // Means divide the error of their sums; the parameters' gradients are sums over the rows.
  s.grad_terms = std::max<int64_t>(1, sizes.numel() / normalized.numel());
  s.label = fmt::format("{} axes, {} parameters, eps {}", axes, parameters, eps);
  s.op = [=](const Tensors& x) -> Tensors {
    return {layer_norm(x[0], normalized, at_or_none(x, 1), at_or_none(x, 2), eps)};
  };
  s.reference = [=](const Tensors& x) -> Tensors { return layer_norm_reference(x, normalized.numel(), eps); };
  s.torch = fmt::format("F.layer_norm(x0, ({},){}, eps={})", fmt::join(normalized, ", "),
                        parameters == 0 ? "" : parameters == 1 ? ", x1" : ", x1, x2", eps);
  return s;
}

OpCase layer_case() {
  OpCase c{.name = "layer_norm"};
  c.samples = {layer_sample({5, 7}, 1, 2),    layer_sample({31}, 1, 2),   layer_sample({2, 3, 5}, 1, 2),
               layer_sample({2, 3, 4}, 2, 2), layer_sample({4, 9}, 1, 0), layer_sample({3, 11}, 1, 1),
               layer_sample({3, 33}, 1, 2),   layer_sample({0, 5}, 1, 2), layer_sample({2, 130}, 1, 2),
               layer_sample({5, 7}, 1, 2, 0.25), layer_sample({3, 2, 6}, 2, 0, 0.25)};
  c.draw = random_layer;
  c.large = {layer_sample({700, 257}, 1, 2), layer_sample({9, 40000}, 1, 2)};
  // One or several rows fill a parallel task of 16,384 elements, or a row is longer than a task.
  c.limits = {layer_sample({64, 256}, 1, 2), layer_sample({65, 256}, 1, 2, 0.25), layer_sample({2, 16384}, 1, 0),
              layer_sample({2, 16385}, 1, 1)};
  c.op = c.samples[0].op;
  c.torch = c.samples[0].torch;
  c.dtypes = kFloatTypes;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};  // a variance of 0 leaves no accuracy
  c.tolerance = {.ulps = 4, .scale = 4};
  c.grad_tolerance = {.ulps = 32, .scale = 2};
  c.grad_dtypes = kRoundedFloats;
  c.bench = {layer_sample({4096, 1024}, 1, 2), layer_sample({1024, 192}, 1, 2)};
  c.work = [](const Tensors& in, const Tensors&) -> Work {
    const double n = static_cast<double>(in[0].numel());
    return {2.0 * n * static_cast<double>(size_of(in[0].dtype())), 8.0 * n};
  };
  c.errors = {{"[layer_norm] x is (2, 3), but its last sizes have to be normalized_shape, (4,)",
               [] { layer_norm(ones({2, 3}), {4}); }},
              {"[layer_norm] weight is (2,)", [] { layer_norm(ones({2, 3}), {3}, ones({2})); }},
              {"needs floating-point values", [] { layer_norm(ones({2, 3}, {.dtype = kInt64}), {3}); }}};
  return c;
}

}  // namespace

std::vector<OpCase> norm_cases() { return {batch_case(true), batch_case(false), mixed_batch_case(), layer_case()}; }

}  // namespace levin::test
