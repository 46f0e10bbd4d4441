#include "cases/cases.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <cmath>
#include <limits>

namespace levin::test {

namespace {

struct Window {
  Tuple<2> kernel, stride, padding = 0, dilation = 1;
  bool ceil_mode = false;
};

int64_t pooled(int64_t in, int64_t kernel, int64_t stride, int64_t padding, int64_t dilation, bool ceil_mode) {
  const int64_t room = in + 2 * padding - dilation * (kernel - 1) - 1;
  int64_t out = room / stride + 1;
  if (ceil_mode && room % stride != 0 && out * stride < in + padding) ++out;
  return out;
}

/// Calls f(output, row, column) for each element of each window, also outside of the plane, and end(output) after each
/// window.
template <class F, class End>
Shape each_window(const Shape& x, const Window& w, F&& f, End&& end) {
  Shape y = x;
  const int h = x.size() - 2, v = x.size() - 1;
  y[h] = pooled(x[h], w.kernel[0], w.stride[0], w.padding[0], w.dilation[0], w.ceil_mode);
  y[v] = pooled(x[v], w.kernel[1], w.stride[1], w.padding[1], w.dilation[1], w.ceil_mode);
  for (int64_t o = 0; o < y.numel(); ++o) {
    const int64_t i = o / y[v] % y[h], j = o % y[v], plane = o / (y[v] * y[h]);
    for (int64_t p = 0; p < w.kernel[0]; ++p)
      for (int64_t q = 0; q < w.kernel[1]; ++q)
        f(plane, i * w.stride[0] - w.padding[0] + p * w.dilation[0],
          j * w.stride[1] - w.padding[1] + q * w.dilation[1]);
    end();
  }
  return y;
}

std::string pair_text(Tuple<2> p) { return "(" + std::to_string(p[0]) + ", " + std::to_string(p[1]) + ")"; }

std::string arguments(const Window& w) {
  return pair_text(w.kernel) + ", stride=" + pair_text(w.stride) + ", padding=" + pair_text(w.padding) +
         (w.ceil_mode ? ", ceil_mode=True" : "");
}

Sample max_sample(const Shape& x, const Window& w) {
  Sample s = sample({x}, distinct());
  s.label = arguments(w) + ", dilation=" + pair_text(w.dilation);
  s.grad_terms = w.kernel[0] * w.kernel[1];
  s.op = [w](const Tensors& in) -> Tensors {
    return {max_pool2d(in[0], w.kernel,
                       {.stride = w.stride, .padding = w.padding, .dilation = w.dilation, .ceil_mode = w.ceil_mode})};
  };
  s.reference = [w](const Tensors& in) -> Tensors {
    const auto xs = in[0].to_vector<double>();
    const int64_t height = in[0].size(-2), width = in[0].size(-1);
    double best = -std::numeric_limits<double>::infinity();
    std::vector<double> y;
    const Shape sizes = each_window(
        in[0].sizes(), w,
        [&](int64_t plane, int64_t r, int64_t c) {
          if (r >= 0 && r < height && c >= 0 && c < width)
            if (const double v = xs[static_cast<std::size_t>((plane * height + r) * width + c)];
                std::isnan(v) || v > best)
              best = v;
        },
        [&] { y.push_back(std::exchange(best, -std::numeric_limits<double>::infinity())); });
    return {from_data(y, sizes)};
  };
  s.torch = "F.max_pool2d(x0, " + s.label + ")";
  return s;
}

Window random_window(Draw& d) {
  Window w{.kernel = Tuple<2>(d.between(1, 3), d.between(1, 3)), .stride = Tuple<2>(d.between(1, 3), d.between(1, 3))};
  w.padding = {d.below(w.kernel[0] / 2 + 1), d.below(w.kernel[1] / 2 + 1)};
  w.ceil_mode = d.chance(30);
  return w;
}

/// Draws planes that are large enough for a window.
Shape random_planes(Draw& d, const Window& w) {
  const Shape lead = d.shape(1, 2, 6);
  Shape x;
  for (const int64_t n : lead) x.push_back(std::max<int64_t>(1, n));
  x.push_back(w.dilation[0] * (w.kernel[0] - 1) + 1 + d.below(6));
  x.push_back(w.dilation[1] * (w.kernel[1] - 1) + 1 + d.below(9));
  return x;
}

OpCase max_pool_case() {
  return {.name = "max_pool2d",
          .samples = {max_sample({1, 1, 2, 2}, {2, 2}), max_sample({2, 3, 6, 8}, {2, 2}), max_sample({3, 7, 5}, {2, 2}),
                      max_sample({2, 2, 7, 9}, {3, 2, 1}), max_sample({1, 2, 5, 6}, {3, 1, 1}),
                      max_sample({2, 1, 6, 7}, {{2, 3}, {3, 2}, {1, 0}}), max_sample({1, 1, 9, 8}, {3, 2, 1, 2}),
                      max_sample({1, 2, 7, 8}, {3, 3, 0, 1, true}), max_sample({1, 1, 5, 5}, {2, 2, 1, 1, true}),
                      max_sample({1, 1, 18, 18}, {17, 1}), max_sample({0, 3, 4, 4}, {2, 2})},
          .draw =
              [](Draw& d) {
                Window w = random_window(d);
                if (d.chance(30)) w.dilation = {d.between(1, 2), d.between(1, 2)};
                return max_sample(random_planes(d, w), w);
              },
          .large = {max_sample({4, 16, 28, 28}, {2, 2}), max_sample({2, 5, 57, 67}, {3, 2, 1}),
                    max_sample({2, 3, 70, 75}, {2, 2})},
          .limits = {max_sample({1, 16, 32, 32}, {2, 2}), max_sample({1, 17, 32, 32}, {3, 2, 1})},  // a task has 16,384
          .dtypes = kFloatTypes,
          .tolerance = {.ulps = 0},
          .grad_tolerance = {.ulps = 2, .scale = 2},
          .grad_dtypes = kRoundedFloats,
          .torch = "F.max_pool2d(x0, 2)",
          .errors = {{"[max_pool2d] padding 2 is more than half of the kernel 3",
                      [] {
                        max_pool2d(zeros({1, 1, 5, 5}), 3, {.padding = 2});
                      }},
                     {"larger than the input 2x2",
                      [] {
                        max_pool2d(zeros({1, 1, 2, 2}), 3);
                      }},
                     {"must be 1 or more",
                      [] {
                        max_pool2d(zeros({1, 1, 2, 2}), 2, {.stride = 0});
                      }},
                     {"padding -1 is negative",
                      [] {
                        max_pool2d(zeros({1, 1, 2, 2}), 2, {.padding = -1});
                      }},
                     {"(B, C, H, W)",
                      [] {
                        max_pool2d(zeros({4, 4}), 2);
                      }},
                     {"holds no element",
                      [] {
                        max_pool2d(zeros({1, 1, 1, 1}), 2, {.padding = 1, .dilation = 2});
                      }},
                     {"a floating type",
                      [] {
                        max_pool2d(zeros({1, 1, 4, 4}, {.dtype = kInt64}), 2);
                      }}},
          .bench = {max_sample({128, 16, 28, 28}, {2, 2}), max_sample({32, 64, 56, 56}, {3, 2, 1})}};
}

/// The gradient (x, g) -> dx as an operation, so that its own derivatives are checked too. It is linear in g.
Sample max_backward_sample(const Shape& x, const Shape& g, const Window& w) {
  Sample s = sample({x, g});
  s.inputs[0].values = distinct();
  s.inputs[0].differentiable = false;
  s.terms = w.kernel[0] * w.kernel[1];
  s.op = [w](const Tensors& in) -> Tensors {
    enable_grad guard;
    const Tensor leaf = in[0].detach().requires_grad_();
    return grad({max_pool2d(leaf, w.kernel, {.stride = w.stride, .padding = w.padding})}, {leaf},
                {.create_graph = true}, {in[1]});
  };
  s.reference = [w](const Tensors& in) -> Tensors {
    const auto xs = in[0].to_vector<double>(), gs = in[1].to_vector<double>();
    const int64_t height = in[0].size(-2), width = in[0].size(-1);
    std::vector<double> dx(xs.size(), 0.0);
    std::size_t output = 0, winner = xs.size();
    each_window(
        in[0].sizes(), w,
        [&](int64_t plane, int64_t r, int64_t c) {
          if (r < 0 || r >= height || c < 0 || c >= width) return;
          const auto at = static_cast<std::size_t>((plane * height + r) * width + c);
          if (winner == xs.size() || xs[at] > xs[winner]) winner = at;
        },
        [&] { dx[std::exchange(winner, xs.size())] += gs[output++]; });
    return {from_data(dx, in[0].sizes())};
  };
  return s;
}

OpCase max_pool_backward_case() {
  return {.name = "max_pool2d_backward",
          .samples = {max_backward_sample({1, 2, 4, 6}, {1, 2, 2, 3}, {2, 2}),
                      max_backward_sample({1, 1, 5, 7}, {1, 1, 3, 4}, {3, 2, 1})},
          .tolerance = {.ulps = 2, .scale = 2}};
}

Sample average_sample(const Shape& x, const Window& w, bool count_padding = true) {
  Sample s = sample({x}, uniform(), w.kernel[0] * w.kernel[1]);
  s.label = arguments(w) + ", count_include_pad=" + (count_padding ? "True" : "False");
  s.op = [=](const Tensors& in) -> Tensors {
    return {avg_pool2d(
        in[0], w.kernel,
        {.stride = w.stride, .padding = w.padding, .ceil_mode = w.ceil_mode, .count_include_pad = count_padding})};
  };
  s.reference = [=](const Tensors& in) -> Tensors {
    const auto xs = in[0].to_vector<double>();
    const int64_t height = in[0].size(-2), width = in[0].size(-1);
    double sum = 0, count = 0;
    std::vector<double> y;
    const Shape sizes = each_window(
        in[0].sizes(), w,
        [&](int64_t plane, int64_t r, int64_t c) {
          const bool inside = r >= 0 && r < height && c >= 0 && c < width;
          const bool in_padding = r < height + w.padding[0] && c < width + w.padding[1];
          if (inside) sum += xs[static_cast<std::size_t>((plane * height + r) * width + c)];
          if (inside || (count_padding && in_padding)) ++count;
        },
        [&] { y.push_back(std::exchange(sum, 0.0) / std::exchange(count, 0.0)); });
    return {from_data(y, sizes)};
  };
  s.torch = "F.avg_pool2d(x0, " + s.label + ")";
  return s;
}

OpCase avg_pool_case() {
  return {
      .name = "avg_pool2d",
      .samples = {average_sample({1, 1, 2, 2}, {2, 2}), average_sample({2, 3, 6, 8}, {2, 2}),
                  average_sample({3, 7, 5}, {3, 1, 1}), average_sample({2, 2, 7, 9}, {3, 2, 1}, false),
                  average_sample({2, 1, 6, 7}, {{2, 3}, {3, 2}, {1, 0}}),
                  average_sample({1, 2, 7, 8}, {3, 3, 0, 1, true}), average_sample({1, 1, 5, 6}, {2, 2, 1, 1, true}),
                  average_sample({1, 1, 5, 6}, {2, 2, 1, 1, true}, false), average_sample({0, 3, 4, 4}, {2, 2})},
      .draw =
          [](Draw& d) {
            const Window w = random_window(d);
            return average_sample(random_planes(d, w), w, !d.chance(40));
          },
      .large = {average_sample({4, 16, 28, 28}, {2, 2}), average_sample({2, 5, 57, 67}, {3, 2, 1}, false)},
      // A parallel task has 16,384 elements.
      .limits = {average_sample({1, 16, 32, 32}, {2, 2}), average_sample({1, 17, 32, 32}, {3, 2, 1})},
      .dtypes = kFloatTypes,
      .tolerance = {.ulps = 2, .scale = 2},
      .grad_dtypes = kRoundedFloats,
      .torch = "F.avg_pool2d(x0, 2)",
      .errors = {{"[avg_pool2d] padding 2 is more than half of the kernel 3",
                  [] {
                    avg_pool2d(zeros({1, 1, 5, 5}), 3, {.padding = 2});
                  }},
                 {"larger than the input",
                  [] {
                    avg_pool2d(zeros({1, 1, 2, 2}), 3);
                  }}},
      .bench = {average_sample({128, 16, 28, 28}, {2, 2})}};
}

}  // namespace

std::vector<OpCase> pool_cases() { return {max_pool_case(), max_pool_backward_case(), avg_pool_case()}; }

}  // namespace levin::test
