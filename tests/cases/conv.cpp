#include "cases/cases.h"

#include <levin/autograd/ops.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::test {

namespace {

/// Calls f(x index, weight index, y index) for every product of the convolution y = conv(x, weight).
template <class F>
void each_product(const Shape& x, const Shape& w, const Shape& y, const Conv2dOptions& o, F&& f) {
  const int64_t out_per_group = w[0] / o.groups;
  for (int64_t b = 0; b < y[0]; ++b)
    for (int64_t oc = 0; oc < y[1]; ++oc)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j)
          for (int64_t c = 0; c < w[1]; ++c)
            for (int64_t p = 0; p < w[2]; ++p)
              for (int64_t q = 0; q < w[3]; ++q) {
                const int64_t h = i * o.stride[0] - o.padding[0] + p * o.dilation[0];
                const int64_t v = j * o.stride[1] - o.padding[1] + q * o.dilation[1];
                const int64_t channel = oc / out_per_group * w[1] + c;
                if (h >= 0 && h < x[2] && v >= 0 && v < x[3])
                  f(static_cast<std::size_t>(((b * x[1] + channel) * x[2] + h) * x[3] + v),
                    static_cast<std::size_t>(((oc * w[1] + c) * w[2] + p) * w[3] + q),
                    static_cast<std::size_t>(((b * y[1] + oc) * y[2] + i) * y[3] + j));
              }
}

int64_t conv_size(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation) {
  return (in + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
}

std::vector<double> with_bias(const Shape& y, const Tensors& in) {
  std::vector<double> values(static_cast<std::size_t>(y.numel()), 0.0);
  if (in.size() < 3) return values;
  const auto bias = in[2].to_vector<double>();
  const int64_t plane = y[2] * y[3];
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = bias[static_cast<std::size_t>(static_cast<int64_t>(i) / plane % y[1])];
  return values;
}

Shape conv_sizes(const Shape& x, const Shape& w, const Conv2dOptions& o) {
  return {x[0], w[0], conv_size(x[2], w[2], o.stride[0], o.padding[0], o.dilation[0]),
          conv_size(x[3], w[3], o.stride[1], o.padding[1], o.dilation[1])};
}

Shape transpose_sizes(const Shape& x, const Shape& w, const ConvTranspose2dOptions& o) {
  const auto size = [](int64_t n, int64_t k, int64_t s, int64_t p, int64_t d, int64_t extra) {
    return (n - 1) * s - 2 * p + d * (k - 1) + extra + 1;
  };
  return {x[0], w[1] * o.groups, size(x[2], w[2], o.stride[0], o.padding[0], o.dilation[0], o.output_padding[0]),
          size(x[3], w[3], o.stride[1], o.padding[1], o.dilation[1], o.output_padding[1])};
}

/// Excludes infinities, because kernels may either multiply the zeros of the padding or skip them.
void without_infinities(Sample& s) {
  for (InputSpec& i : s.inputs) i.finite = true;
}

/// Returns the largest number of terms of a gradient: x's sums over a window of all outputs, the weight's and the
/// bias's over all images and positions.
int64_t terms_of_gradients(const Shape& x, const Shape& w, const Shape& y) {
  const int64_t places = std::max(x[2] * x[3], y[2] * y[3]);
  return std::max({int64_t{1}, w[0] * w[2] * w[3], w[1] * w[2] * w[3], x[0] * places});
}

Tensors conv_reference(const Tensors& in, const Conv2dOptions& o) {
  const Shape &x = in[0].sizes(), &w = in[1].sizes(), y = conv_sizes(x, w, o);
  std::vector<double> values = with_bias(y, in);
  const auto xv = in[0].to_vector<double>(), wv = in[1].to_vector<double>();
  each_product(x, w, y, o, [&](std::size_t xi, std::size_t wi, std::size_t yi) { values[yi] += xv[xi] * wv[wi]; });
  return {from_data(values, y)};
}

/// Replaces one image (1, C, H, W) by (C, H, W).
Sample single_image(Sample s) {
  s.inputs[0].sizes.erase(0);
  s.label += ", unbatched";
  s.torch = "-";
  s.reference = [batched = s.reference](const Tensors& in) -> Tensors {
    Tensors with_batch = in;
    with_batch[0] = in[0].unsqueeze(0);
    return {batched(with_batch)[0].squeeze(0)};
  };
  return s;
}

Tensors transpose_reference(const Tensors& in, const ConvTranspose2dOptions& o) {
  const Shape &x = in[0].sizes(), &w = in[1].sizes(), y = transpose_sizes(x, w, o);
  std::vector<double> values = with_bias(y, in);
  const auto xv = in[0].to_vector<double>(), wv = in[1].to_vector<double>();
  each_product(y, w, x, {o.stride, o.padding, o.dilation, o.groups},
               [&](std::size_t yi, std::size_t wi, std::size_t xi) { values[yi] += xv[xi] * wv[wi]; });
  return {from_data(values, y)};
}

std::string pair_text(Tuple<2> p) { return "(" + std::to_string(p[0]) + ", " + std::to_string(p[1]) + ")"; }

Sample conv_sample(const std::vector<Shape>& shapes, const Conv2dOptions& o = {}) {
  Sample s = sample(shapes, uniform(), shapes[1][1] * shapes[1][2] * shapes[1][3] + 1);
  const std::string arguments = "stride=" + pair_text(o.stride) + ", padding=" + pair_text(o.padding) +
                                ", dilation=" + pair_text(o.dilation) + ", groups=" + std::to_string(o.groups);
  s.grad_terms = terms_of_gradients(shapes[0], shapes[1], conv_sizes(shapes[0], shapes[1], o));
  s.label = arguments;
  without_infinities(s);
  s.op = [o](const Tensors& x) -> Tensors { return {conv2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), o)}; };
  s.reference = [o](const Tensors& x) { return conv_reference(x, o); };
  s.code = fmt::format(
      "conv2d(x0, x1, {}, {{.stride = {{{}, {}}}, .padding = {{{}, {}}}, .dilation = {{{}, {}}}, .groups = {}}})",
      shapes.size() > 2 ? "x2" : "Tensor()", o.stride[0], o.stride[1], o.padding[0], o.padding[1], o.dilation[0],
      o.dilation[1], o.groups);
  s.torch = std::string("F.conv2d(x0, x1, ") + (shapes.size() > 2 ? "x2" : "None") + ", " + arguments + ")";
  return s;
}

Sample transpose_sample(const std::vector<Shape>& shapes, const ConvTranspose2dOptions& o = {}) {
  Sample s = sample(shapes, uniform(), shapes[1][0] * shapes[1][2] * shapes[1][3] + 1);
  const std::string arguments = "stride=" + pair_text(o.stride) + ", padding=" + pair_text(o.padding) +
                                ", output_padding=" + pair_text(o.output_padding) +
                                ", dilation=" + pair_text(o.dilation) + ", groups=" + std::to_string(o.groups);
  s.grad_terms = terms_of_gradients(shapes[0], shapes[1], transpose_sizes(shapes[0], shapes[1], o));
  s.label = arguments;
  without_infinities(s);
  s.op = [o](const Tensors& x) -> Tensors { return {conv_transpose2d(x[0], x[1], x.size() > 2 ? x[2] : Tensor(), o)}; };
  s.reference = [o](const Tensors& x) { return transpose_reference(x, o); };
  s.torch = std::string("F.conv_transpose2d(x0, x1, ") + (shapes.size() > 2 ? "x2" : "None") + ", " + arguments + ")";
  return s;
}

Work conv_work(const Tensors& in, const Tensors& out) {
  const double weight_per_output = static_cast<double>(in[1].numel() / in[1].size(0));
  return {4.0 * static_cast<double>(in[0].numel() + in[1].numel() + out[0].numel()),
          2.0 * static_cast<double>(out[0].numel()) * weight_per_output};
}

Tuple<2> random_pair(Draw& d, int64_t low, int64_t high) {
  const int64_t h = d.between(low, high);
  return {h, d.chance(50) ? h : d.between(low, high)};
}

/// A shape that Winograd's convolution serves on the CPU, with values of the case's own magnitude: errors are relative
/// to the largest value of a tile, not to a result's own terms.
Sample random_winograd(Draw& d) {
  const int64_t kernel = d.chance(50) ? 3 : 5, padding = d.below(2);
  const int64_t height = d.between(13, 18) - 2 * padding, width = d.between(13, 18) - 2 * padding;
  const int64_t batch = d.between(4, 7), inputs = d.between(16, 18), outputs = d.between(16, 18);
  Sample s = conv_sample({{batch, inputs, height, width}, {outputs, inputs, kernel, kernel}}, {.padding = padding});
  for (InputSpec& i : s.inputs) i.own = true;
  return s;
}

Sample random_conv(Draw& d) {
  if (d.chance(1)) return random_winograd(d);
  Conv2dOptions o{.stride = random_pair(d, 1, 3), .padding = random_pair(d, 0, 2), .dilation = random_pair(d, 1, 2)};
  o.groups = d.chance(30) ? d.between(1, 3) : 1;
  const int64_t inputs = d.between(1, 3), outputs = d.between(1, 3) * o.groups;
  const Tuple<2> kernel = random_pair(d, 1, 4);
  const auto least = [](int64_t k, int64_t dilation, int64_t padding) {
    return std::max<int64_t>(1, dilation * (k - 1) + 1 - 2 * padding);
  };
  const int64_t height = least(kernel[0], o.dilation[0], o.padding[0]) + d.below(6);
  const int64_t width = least(kernel[1], o.dilation[1], o.padding[1]) + d.below(9);
  std::vector<Shape> shapes{{d.between(1, 3), inputs * o.groups, height, width},
                            {outputs, inputs, kernel[0], kernel[1]}};
  if (d.chance(50)) shapes.push_back({outputs});
  return conv_sample(shapes, o);
}

Sample random_transpose(Draw& d) {
  ConvTranspose2dOptions o{.stride = random_pair(d, 1, 3), .dilation = random_pair(d, 1, 2)};
  o.groups = d.chance(30) ? d.between(1, 3) : 1;
  const Tuple<2> kernel = random_pair(d, 1, 4);
  o.padding = {d.below(o.dilation[0] * (kernel[0] - 1) / 2 + 1), d.below(o.dilation[1] * (kernel[1] - 1) / 2 + 1)};
  o.output_padding = {d.below(std::max(o.stride[0], o.dilation[0])), d.below(std::max(o.stride[1], o.dilation[1]))};
  const int64_t outputs = d.between(1, 3), inputs = d.between(1, 3) * o.groups;
  std::vector<Shape> shapes{{d.between(1, 3), inputs, d.between(1, 5), d.between(1, 7)},
                            {inputs, outputs, kernel[0], kernel[1]}};
  if (d.chance(50)) shapes.push_back({outputs * o.groups});
  return transpose_sample(shapes, o);
}

OpCase conv2d_case() {
  return {
      .name = "conv2d",
      .samples = {conv_sample({{1, 1, 3, 3}, {1, 1, 1, 1}}), conv_sample({{2, 2, 5, 4}, {3, 2, 3, 2}, {3}}),
                  conv_sample({{2, 1, 5, 5}, {2, 1, 3, 3}, {2}}, {.padding = 1}),
                  conv_sample({{1, 2, 6, 5}, {2, 2, 3, 3}}, {.stride = 2, .padding = 1}),
                  conv_sample({{1, 2, 6, 7}, {2, 2, 2, 2}}, {.stride = {1, 2}, .padding = {0, 1}, .dilation = {2, 1}}),
                  conv_sample({{2, 4, 4, 4}, {6, 2, 3, 3}, {6}}, {.padding = 1, .groups = 2}),
                  conv_sample({{1, 3, 5, 5}, {3, 1, 3, 3}}, {.groups = 3}),
                  conv_sample({{0, 2, 5, 4}, {3, 2, 3, 2}, {3}}),
                  single_image(conv_sample({{1, 4, 5, 4}, {6, 2, 3, 2}, {6}}, {.padding = 1, .groups = 2}))},
      .draw = random_conv,
      .large = {conv_sample({{2, 3, 11, 53}, {6, 1, 3, 3}, {6}}, {.padding = 1, .groups = 3}),
                conv_sample({{3, 2, 14, 13}, {2, 1, 5, 5}}, {.stride = 2, .padding = 2, .groups = 2}),
                conv_sample({{2, 3, 9, 20}, {3, 1, 3, 2}}, {.stride = {2, 3}, .dilation = {1, 2}, .groups = 3}),
                conv_sample({{1, 2, 1, 70}, {18, 1, 1, 4}}, {.groups = 2}),
                conv_sample({{5, 3, 28, 28}, {16, 3, 5, 5}, {16}}, {.padding = 2}),
                conv_sample({{3, 16, 14, 14}, {33, 16, 5, 5}, {33}}),
                conv_sample({{3, 17, 14, 14}, {20, 17, 4, 4}}, {.stride = 2, .padding = 1}),
                conv_sample({{7, 16, 15, 14}, {18, 16, 3, 3}, {18}}, {.padding = 1}),
                // Kernels of 1 x 1 are products with an image, unless its planes have fewer than 128 pixels.
                conv_sample({{2, 9, 11, 12}, {10, 9, 1, 1}, {10}}),
                conv_sample({{3, 18, 1, 128}, {20, 9, 1, 1}}, {.groups = 2}),
                conv_sample({{2, 9, 1, 127}, {10, 9, 1, 1}, {10}}),
                conv_sample({{2, 3, 7, 5}, {5, 3, 1, 1}, {5}})},
      .dtypes = kFloatTypes,
      .tolerance = {.ulps = 2, .scale = 4},
      .grad_tolerance = {.ulps = 16, .scale = 4},
      .grad_dtypes = kRoundedFloats,
      .errors = {{"[conv2d] x has 3 channels",
                  [] {
                    conv2d(zeros({1, 3, 5, 5}), zeros({2, 4, 3, 3}));
                  }},
                 {"larger than the input",
                  [] {
                    conv2d(zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3}));
                  }},
                 {"larger than the input 2x2",
                  [] {
                    conv2d(zeros({1, 1, 2, 2}), zeros({1, 1, 3, 3}), {}, {.stride = 2});
                  }},
                 {"larger than the input 9x3",
                  [] {
                    conv2d(zeros({1, 1, 9, 3}), zeros({1, 1, 3, 3}), {}, {.stride = {1, 4}, .dilation = {1, 2}});
                  }},
                 {"four dimensions",
                  [] {
                    conv2d(zeros({5, 5}), zeros({1, 1, 3, 3}));
                  }},
                 {"one value for each of 2",
                  [] {
                    conv2d(zeros({1, 1, 5, 5}), zeros({2, 1, 3, 3}), zeros({3}));
                  }},
                 {"must be 1 or more",
                  [] {
                    conv2d(zeros({1, 1, 5, 5}), zeros({2, 1, 3, 3}), {}, {.stride = 0});
                  }},
                 {"[conv2d] x is float32, weight is float32, bias is float64: their types have to be equal",
                  [] {
                    conv2d(zeros({1, 1, 5, 5}), zeros({2, 1, 3, 3}), zeros({2}, {.dtype = kDouble}));
                  }},
                 {"a floating type",
                  [] {
                    conv2d(zeros({1, 1, 5, 5}, {.dtype = kInt32}), zeros({2, 1, 3, 3}, {.dtype = kInt32}));
                  }}},
      .bench = {conv_sample({{128, 1, 28, 28}, {16, 1, 5, 5}, {16}}, {.padding = 2}),
                conv_sample({{128, 16, 14, 14}, {32, 16, 5, 5}, {32}}),
                conv_sample({{128, 32, 26, 26}, {64, 32, 3, 3}, {64}})},
      .work = conv_work};
}

OpCase conv_transpose2d_case() {
  return {.name = "conv_transpose2d",
          .samples = {transpose_sample({{2, 3, 1, 1}, {3, 2, 4, 4}, {2}}),
                      transpose_sample({{2, 2, 3, 3}, {2, 3, 4, 4}, {3}}, {.stride = 2, .padding = 1}),
                      transpose_sample({{1, 2, 3, 4}, {2, 1, 3, 3}},
                                       {.stride = {2, 3}, .padding = 1, .output_padding = {1, 2}}),
                      transpose_sample({{1, 4, 3, 3}, {4, 1, 3, 3}}, {.padding = 1, .groups = 2, .dilation = 2}),
                      transpose_sample({{0, 2, 3, 3}, {2, 3, 4, 4}, {3}}),
                      transpose_sample({{2, 3, 3, 2}, {3, 2, 1, 1}}, {.output_padding = {1, 0}, .dilation = {2, 1}}),
                      transpose_sample({{1, 9, 2, 2}, {9, 8, 2, 1}}, {.output_padding = {1, 1}, .dilation = {2, 2}}),
                      single_image(
                          transpose_sample({{1, 2, 3, 3}, {2, 3, 4, 4}, {3}}, {.stride = 2, .padding = 1}))},
          .draw = random_transpose,
          .large = {transpose_sample({{5, 32, 7, 7}, {32, 17, 4, 4}}, {.stride = 2, .padding = 1}),
                    transpose_sample({{7, 16, 13, 15}, {16, 17, 3, 3}, {17}}, {.padding = 1}),
                    transpose_sample({{2, 20, 12, 11}, {20, 9, 1, 1}, {18}}, {.groups = 2})},
          .dtypes = kFloatTypes,
          .tolerance = {.ulps = 2, .scale = 4},
          .grad_tolerance = {.ulps = 16, .scale = 4},
          .grad_dtypes = kRoundedFloats,
          .errors = {{"[conv_transpose2d] x has 3 channels",
                      [] {
                        conv_transpose2d(zeros({1, 3, 5, 5}), zeros({4, 2, 3, 3}));
                      }},
                     {"less padding",
                      [] {
                        conv_transpose2d(zeros({1, 1, 1, 1}), zeros({1, 1, 3, 3}), {}, {.padding = 2});
                      }},
                     {"output_padding", [] {
                        conv_transpose2d(zeros({1, 1, 3, 3}), zeros({1, 1, 3, 3}), {}, {.output_padding = 1});
                      }}}};
}

}  // namespace

std::vector<OpCase> conv_cases() { return {conv2d_case(), conv_transpose2d_case()}; }

}  // namespace levin::test
