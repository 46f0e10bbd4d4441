// Products with int8 weights. The references of dynamic quantization round each value as the contract states it, so
// that their integer sums are those of the kernels.

#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <cfloat>
#include <cmath>
#include <limits>

namespace levin::test {

namespace {

std::vector<InputSpec> inputs_of(const Shape& x, const Shape& weight, bool with_bias) {
  Shape scale = Shape::filled(weight.size(), 1);
  scale[0] = weight[0];
  std::vector<InputSpec> inputs = {
      {.sizes = x, .finite = true},
      {.sizes = weight, .values = integers(-127, 128), .dtype = DType::i8, .differentiable = false, .own = true},
      {.sizes = scale, .values = uniform(0.005, 0.02), .dtype = DType::f32, .differentiable = false, .own = true}};
  if (with_bias) inputs.push_back({.sizes = {weight[0]}, .finite = true});
  return inputs;
}

Tensor bias_of(const Tensors& in) { return in.size() > 3 ? in[3] : Tensor(); }

/// Rounds n values to a multiple of a step, from the least and the greatest of them, in float as the kernels do.
void round_values(double* x, int64_t n) {
  float low = 0, high = 0;
  bool finite = true;
  for (int64_t i = 0; i < n; ++i) {
    low = std::min(low, static_cast<float>(x[i]));
    high = std::max(high, static_cast<float>(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const float step = std::max(high / 255.0f - low / 255.0f, FLT_MIN);
  const double zero = std::min(std::max(std::nearbyint(static_cast<double>(-low / step)), 0.0), 255.0);
  for (int64_t i = 0; i < n; ++i) {
    const double q = std::nearbyint(static_cast<double>(static_cast<float>(x[i]) / step)) + zero;
    x[i] = finite ? (std::min(std::max(q, 0.0), 255.0) - zero) * static_cast<double>(step)
                  : std::numeric_limits<double>::quiet_NaN();
  }
}

Tensors linear_reference(const Tensors& in, bool dynamic) {
  const int64_t n = in[1].sizes()[0], k = in[1].sizes()[1], m = k == 0 ? 0 : in[0].numel() / k;
  auto x = in[0].to_vector<double>();
  const auto weight = in[1].to_vector<std::int8_t>();
  const auto scale = in[2].to_vector<float>();
  const auto bias = in.size() > 3 ? in[3].to_vector<double>() : std::vector<double>();
  std::vector<double> y;
  for (int64_t i = 0; i < m; ++i) {
    double* row = x.data() + i * k;
    if (dynamic) round_values(row, k);
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += row[p] * weight[static_cast<std::size_t>(j * k + p)];
      const auto at = static_cast<std::size_t>(j);
      y.push_back(sum * static_cast<double>(scale[at]) + (bias.empty() ? 0.0 : bias[at]));
    }
  }
  Shape sizes = in[0].sizes();
  sizes[sizes.size() - 1] = n;
  return {from_data(y, sizes)};
}

Sample linear_sample(const Shape& x, int64_t n, bool with_bias = true) {
  const int64_t k = x.back();
  Sample s{.inputs = inputs_of(x, {n, k}, with_bias), .terms = k};
  s.grad_terms = std::max<int64_t>({n, x.numel() / std::max<int64_t>(k, 1), 1});
  return s;
}

OpCase linear_case(bool dynamic) {
  OpCase c{.name = dynamic ? "linear_int8_dynamic" : "linear_int8_weight_only"};
  const auto function = dynamic ? linear_int8_dynamic : linear_int8_weight_only;
  c.op = [=](const Tensors& x) -> Tensors { return {function(x[0], x[1], x[2], bias_of(x))}; };
  c.reference = [=](const Tensors& x) { return linear_reference(x, dynamic); };
  // Rows and columns around those of a tile, and terms around the bytes of a vector; weight-only has another way for
  // more than eight rows.
  c.samples = {linear_sample({1, 1}, 1),   linear_sample({3, 31}, 5),         linear_sample({4, 64}, 4),
               linear_sample({5, 65}, 7),  linear_sample({8, 33}, 6, false),  linear_sample({9, 33}, 6),
               linear_sample({33, 17}, 3), linear_sample({2, 3, 128}, 9),     linear_sample({40}, 2),
               linear_sample({0, 4}, 3),   linear_sample({1, 200}, 13, false)};
  // The second one is of several blocks of floats, in weight-only.
  c.large = {linear_sample({3, 1031}, 301), linear_sample({10, 701}, 801)};
  c.draw = [](Draw& d) {
    Shape sizes = d.shape(1);
    sizes[sizes.size() - 1] = d.between(1, 150);
    return linear_sample(sizes, d.between(1, 40), d.chance(50));
  };
  c.dtypes = dynamic ? std::vector<DType>{DType::f32} : kFloatTypes;
  c.tolerance = {.ulps = 4, .scale = 2};
  c.grad_tolerance = {.ulps = 16, .scale = 4};
  c.differentiable = c.twice = !dynamic;
  c.bench = {linear_sample({1, 1024}, 1024), linear_sample({64, 1024}, 1024)};
  const std::string tag = "[" + c.name + "] ";
  const Tensor q = zeros({2, 3}, {.dtype = kInt8}), scale = ones({2, 1});
  c.errors = {{tag + "needs floating-point values", [=] { function(zeros({2, 3}, {.dtype = kInt64}), q, scale, {}); }},
              {tag + "weight is float32; make it int8 with quantize_weight_int8",
               [=] { function(ones({2, 3}), ones({2, 3}), scale, {}); }},
              {tag + "weight is (2, 3), scale (2,), bias undefined: a weight of 2 dimensions has a scale and a",
               [=] { function(ones({2, 3}), q, ones({2}), {}); }},
              {tag + "x is (2, 4), weight is (2, 3): the last size of x must be the weight's second",
               [=] { function(ones({2, 4}), q, scale, {}); }}};
  if (dynamic)
    c.errors.push_back({tag + "a sum of 65537 terms may not fit int32; up to 65536 do", [=] {
                          function(ones({1, 65537}), zeros({1, 65537}, {.dtype = kInt8}), ones({1, 1}), {});
                        }});
  return c;
}

Tensors conv_reference(const Tensors& in, const Conv2dOptions& o, bool dynamic) {
  const Shape &x = in[0].sizes(), &w = in[1].sizes();
  auto values = in[0].to_vector<double>();
  const int64_t image = x[1] * x[2] * x[3];
  if (dynamic)
    for (int64_t b = 0; b < x[0]; ++b) round_values(values.data() + b * image, image);
  std::vector<double> weight;
  const auto scale = in[2].to_vector<float>();
  const auto q = in[1].to_vector<std::int8_t>();
  for (std::size_t i = 0; i < q.size(); ++i)
    weight.push_back(q[i] * static_cast<double>(scale[i / (q.size() / scale.size())]));
  return {conv2d(from_data(values, x), from_data(weight, w), in.size() > 3 ? in[3] : Tensor(), o)};
}

Sample conv_sample(bool dynamic, const Shape& x, const Shape& w, const Conv2dOptions& o, bool with_bias = true) {
  Sample s{.inputs = inputs_of(x, w, with_bias), .terms = w[1] * w[2] * w[3]};
  s.grad_terms = std::max<int64_t>(w[0] * w[2] * w[3], x[0] * x[2] * x[3]);
  s.label = fmt::format("stride {}, {}, padding {}, {}, dilation {}, {}, groups {}", o.stride[0], o.stride[1],
                        o.padding[0], o.padding[1], o.dilation[0], o.dilation[1], o.groups);
  const auto function = dynamic ? conv2d_int8_dynamic : conv2d_int8_weight_only;
  s.op = [=](const Tensors& in) -> Tensors { return {function(in[0], in[1], in[2], bias_of(in), o)}; };
  s.reference = [=](const Tensors& in) { return conv_reference(in, o, dynamic); };
  s.fixed = true;
  return s;
}

OpCase conv_case(bool dynamic) {
  OpCase c{.name = dynamic ? "conv2d_int8_dynamic" : "conv2d_int8_weight_only"};
  const auto one = [=](const Shape& x, const Shape& w, const Conv2dOptions& o = {}, bool with_bias = true) {
    return conv_sample(dynamic, x, w, o, with_bias);
  };
  c.samples = {one({1, 1, 5, 5}, {1, 1, 3, 3}),
               one({2, 3, 7, 9}, {5, 3, 3, 2}, {.padding = {1, 2}}),
               one({2, 4, 9, 8}, {6, 2, 3, 3}, {.stride = {2, 1}, .padding = 1, .groups = 2}, false),
               one({1, 2, 11, 10}, {3, 2, 3, 3}, {.stride = {1, 2}, .padding = 2, .dilation = {2, 3}}),
               one({3, 4, 6, 5}, {8, 1, 5, 5}, {.padding = 2, .groups = 4}),
               one({2, 17, 4, 4}, {9, 17, 1, 1}),
               one({0, 2, 5, 5}, {3, 2, 3, 3})};
  c.large = {one({3, 8, 23, 29}, {17, 8, 3, 3}, {.padding = 1})};
  c.draw = [=](Draw& d) {
    const int64_t groups = d.between(1, 2);
    const Conv2dOptions o{
        .stride = d.between(1, 2), .padding = d.below(3), .dilation = d.between(1, 2), .groups = groups};
    const int64_t channels = d.between(1, 5), kernel = d.between(1, 3);
    return one({d.between(1, 3), channels * groups, d.between(5, 11), d.between(5, 9)},
               {d.between(1, 5) * groups, channels, kernel, kernel}, o, d.chance(50));
  };
  c.op = c.samples[0].op;
  c.reference = c.samples[0].reference;
  c.dtypes = dynamic ? std::vector<DType>{DType::f32} : kFloatTypes;
  c.tolerance = {.ulps = 4, .scale = 2};
  c.grad_tolerance = {.ulps = 16, .scale = 4};
  c.differentiable = c.twice = !dynamic;
  c.bench = {one({64, 16, 14, 14}, {32, 16, 5, 5}, {.padding = 2})};
  const Tensor q = zeros({2, 3, 3, 3}, {.dtype = kInt8}), scale = ones({2, 1, 1, 1});
  if (!dynamic) return c;
  c.errors = {{"[conv2d_int8_dynamic] x is (1, 2, 5, 5), and weight (2, 3, 3, 3) with 1 groups takes images of 3",
               [=] { conv2d_int8_dynamic(ones({1, 2, 5, 5}), q, scale); }},
              {"[conv2d_int8_dynamic] the kernel 3x3 with padding (0, 0), stride (1, 1) and dilation (1, 1) does not",
               [=] { conv2d_int8_dynamic(ones({1, 3, 2, 5}), q, scale); }}};
  return c;
}

}  // namespace

std::vector<OpCase> quantized_cases() {
  return {linear_case(false), linear_case(true), conv_case(false), conv_case(true)};
}

}  // namespace levin::test
