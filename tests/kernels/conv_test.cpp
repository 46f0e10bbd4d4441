// Convolution on raw pointers compared with simple loops in double precision.
#include "../../kernels/cpu/conv/conv.h"

#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace levin;
using namespace levin::kernels::cpu;

struct Window {
  int64_t kernel_h = 3, kernel_w = 3, stride = 1, pad = 0, dilation = 1, groups = 1, extra = 0;
};

/// `extra` rows and columns of the input lie beyond the last window, as with a transposed convolution's output padding.
Conv2dShape shape(int64_t batch, int64_t in, int64_t h, int64_t w, int64_t out, const Window& k) {
  Conv2dShape s{.batch = batch,
                .in_channels = in,
                .in_h = h,
                .in_w = w,
                .out_channels = out,
                .kernel_h = k.kernel_h,
                .kernel_w = k.kernel_w,
                .stride_h = k.stride,
                .stride_w = k.stride,
                .pad_h = k.pad,
                .pad_w = k.pad,
                .dilation_h = k.dilation,
                .dilation_w = k.dilation,
                .groups = k.groups};
  s.out_h = (h - k.extra + 2 * k.pad - k.dilation * (k.kernel_h - 1) - 1) / k.stride + 1;
  s.out_w = (w - k.extra + 2 * k.pad - k.dilation * (k.kernel_w - 1) - 1) / k.stride + 1;
  return s;
}

std::string describe(const Conv2dShape& s) {
  const auto text = [](int64_t x) { return std::to_string(x) + " "; };
  return "batch " + text(s.batch) + "in " + text(s.in_channels) + text(s.in_h) + text(s.in_w) + "out " +
         text(s.out_channels) + text(s.out_h) + text(s.out_w) + "kernel " + text(s.kernel_h) + text(s.kernel_w) +
         "stride " + text(s.stride_h) + "pad " + text(s.pad_h) + "dilation " + text(s.dilation_h) + "groups " +
         text(s.groups);
}

std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

/// A tensor followed by guards, its exact value, and the sum of magnitudes and number of terms of each element.
template <class T>
struct Result {
  static constexpr int64_t guard = 64;
  int64_t size;
  std::vector<T> got;
  std::vector<double> exact, magnitude, terms;

  explicit Result(int64_t n) : size(n), got(at(n + guard), T(-77)), exact(at(n)), magnitude(at(n)), terms(at(n)) {
    std::fill_n(got.begin(), n, std::numeric_limits<T>::quiet_NaN());  // must be overwritten, never read
  }
  void add(int64_t i, double term) {
    exact[at(i)] += term;
    magnitude[at(i)] += std::abs(term);
    terms[at(i)] += 1;
  }
  /// Returns the error, or an empty string. Errors may reach gamma_(terms + 2) of the magnitudes.
  std::string verdict(const char* name) const {
    for (int64_t i = 0; i < guard; ++i) {
      if (got[at(size + i)] != T(-77)) return std::string(name) + " wrote past its end";
    }
    for (int64_t i = 0; i < size; ++i) {
      const double unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
      const double allowed = (terms[at(i)] + 2) * unit * magnitude[at(i)];
      if (!(std::abs(static_cast<double>(got[at(i)]) - exact[at(i)]) <= allowed)) {
        return std::string(name) + "[" + std::to_string(i) + "] = " + std::to_string(got[at(i)]) + ", expected " +
               std::to_string(exact[at(i)]) + " +- " + std::to_string(allowed);
      }
    }
    return {};
  }
};

template <class T>
struct Case {
  Conv2dShape s;
  std::vector<T> x, w, b, dy;

  explicit Case(const Conv2dShape& shape_) : s(shape_) {
    std::mt19937 random(static_cast<std::uint32_t>(s.in_channels * 31 + s.out_channels));
    std::uniform_real_distribution<double> uniform(-1, 1);
    const auto fill = [&](std::vector<T>& v, int64_t n) {
      for (int64_t i = 0; i < n; ++i) v.push_back(static_cast<T>(uniform(random)));
    };
    fill(x, s.batch * s.in_channels * s.in_plane());
    fill(w, s.out_channels * s.taps());
    fill(b, s.out_channels);
    fill(dy, s.batch * s.out_channels * s.out_plane());
  }

  /// Calls f(x index, w index, y index) for every product of the convolution.
  template <class F>
  void each_product(F&& f) const {
    for (int64_t y = 0; y < static_cast<int64_t>(dy.size()); ++y) {
      const int64_t ox = y % s.out_w, oy = y / s.out_w % s.out_h, o = y / s.out_plane() % s.out_channels;
      const int64_t n = y / s.out_plane() / s.out_channels, group = o / s.group_out();
      for (int64_t tap = 0; tap < s.taps(); ++tap) {
        const int64_t kx = tap % s.kernel_w, ky = tap / s.kernel_w % s.kernel_h, c = tap / s.kernel();
        const int64_t iy = oy * s.stride_h + ky * s.dilation_h - s.pad_h,
                      ix = ox * s.stride_w + kx * s.dilation_w - s.pad_w;
        if (iy < 0 || iy >= s.in_h || ix < 0 || ix >= s.in_w) continue;
        f(((n * s.in_channels + group * s.group_in() + c) * s.in_h + iy) * s.in_w + ix, o * s.taps() + tap, y);
      }
    }
  }

  std::string verdict() const {
    Result<T> y(static_cast<int64_t>(dy.size())), dx(static_cast<int64_t>(x.size())),
        dw(static_cast<int64_t>(w.size()));
    Result<T> plain = y;
    each_product([&](int64_t xi, int64_t wi, int64_t yi) {
      const auto vx = static_cast<double>(x[at(xi)]), vw = static_cast<double>(w[at(wi)]),
                 vy = static_cast<double>(dy[at(yi)]);
      y.add(yi, vx * vw);
      plain.add(yi, vx * vw);
      dx.add(xi, vy * vw);
      dw.add(wi, vy * vx);
    });
    for (int64_t i = 0; i < y.size; ++i) {
      const int64_t channel = i / s.out_plane() % s.out_channels;
      y.add(i, static_cast<double>(b[at(channel)]));
    }
    conv2d_forward(s, x.data(), w.data(), b.data(), y.got.data());
    conv2d_forward(s, x.data(), w.data(), static_cast<const T*>(nullptr), plain.got.data());
    conv2d_backward_input(s, dy.data(), w.data(), dx.got.data());
    conv2d_backward_weight(s, x.data(), dy.data(), dw.got.data());
    for (const std::string& text :
         {y.verdict("y"), plain.verdict("y without bias"), dx.verdict("dx"), dw.verdict("dw")}) {
      if (!text.empty()) return text;
    }
    return {};
  }
};

template <class T>
void check(const Conv2dShape& s) {
  const std::string verdict = Case<T>(s).verdict();
  CHECK_MESSAGE(verdict.empty(), describe(s) << ": " << verdict);
}

struct ThreadsGuard {
  int before = num_threads();
  ~ThreadsGuard() { set_num_threads(before); }
};

}  // namespace

TEST_CASE("conv2d: strides, padding and dilation, few and many channels") {
  for (const int64_t in : {1, 8, 17}) {
    for (const int64_t out : {1, 8, 33}) {
      for (const int64_t stride : {1, 2, 3}) {
        for (const int64_t pad : {0, 1, 4}) {
          for (const int64_t dilation : {1, 2}) {
            check<float>(shape(2, in, 9, 11, out, {.stride = stride, .pad = pad, .dilation = dilation}));
          }
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: kernels of all shapes", T, float, double) {
  for (const auto& [kh, kw] : {std::pair<int64_t, int64_t>{1, 1}, {1, 3}, {5, 2}, {4, 4}, {7, 7}}) {
    for (const int64_t stride : {1, 2}) {
      check<T>(shape(3, 9, 10, 13, 18, {.kernel_h = kh, .kernel_w = kw, .stride = stride, .pad = 2}));
      check<T>(shape(1, 3, 8, 7, 5, {.kernel_h = kh, .kernel_w = kw, .stride = stride, .pad = 1}));
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: groups, depthwise included", T, float, double) {
  for (const int64_t stride : {1, 2}) {
    check<T>(shape(2, 16, 7, 6, 32, {.stride = stride, .pad = 1, .groups = 2}));
    check<T>(shape(2, 6, 7, 6, 6, {.stride = stride, .pad = 1, .groups = 6}));
    check<T>(shape(2, 4, 7, 6, 32, {.stride = stride, .pad = 1, .groups = 4}));
    check<T>(shape(2, 40, 5, 5, 20, {.stride = stride, .groups = 2}));
  }
}

TEST_CASE("conv2d: the layers of the sample nets") {
  check<float>(shape(9, 1, 28, 28, 16, {.kernel_h = 5, .kernel_w = 5, .pad = 2}));
  check<float>(shape(9, 16, 14, 14, 32, {.kernel_h = 5, .kernel_w = 5}));
  check<float>(shape(2, 32, 26, 26, 64, {}));
  check<float>(shape(9, 24, 14, 14, 40, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = 1}));
  check<float>(shape(9, 20, 7, 7, 10, {.kernel_h = 7, .kernel_w = 7}));
}

TEST_CASE("conv2d: rows and columns that no window reaches, more padding than kernel, one pixel") {
  check<float>(shape(2, 10, 9, 9, 12, {.stride = 2, .pad = 1, .extra = 1}));
  check<float>(shape(2, 10, 8, 8, 12, {.kernel_h = 1, .kernel_w = 1, .stride = 3, .pad = 2}));
  check<float>(shape(2, 10, 3, 3, 12, {.kernel_h = 2, .kernel_w = 2, .pad = 5}));
  check<float>(shape(2, 10, 1, 1, 12, {.pad = 1}));
  check<float>(shape(1, 8, 1, 40, 8, {.kernel_h = 1, .kernel_w = 5}));
  check<float>(shape(0, 8, 5, 5, 8, {}));
}

TEST_CASE("conv2d: the same bits with any number of threads") {
  const ThreadsGuard guard;
  for (const Conv2dShape& s :
       {shape(37, 5, 9, 8, 40, {.pad = 1}), shape(3, 40, 9, 8, 70, {.stride = 2, .pad = 1}),
        shape(20, 3, 6, 6, 4, {.pad = 1}), shape(5, 16, 7, 7, 24, {.kernel_h = 7, .kernel_w = 7})}) {
    const Case<float> c(s);
    std::vector<float> first;
    for (const int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      std::vector<float> all(c.dy.size() + c.x.size() + c.w.size());
      float* y = all.data();
      float *dx = y + c.dy.size(), *dw = dx + c.x.size();
      conv2d_forward(s, c.x.data(), c.w.data(), c.b.data(), y);
      conv2d_backward_input(s, c.dy.data(), c.w.data(), dx);
      conv2d_backward_weight(s, c.x.data(), c.dy.data(), dw);
      if (first.empty()) first = all;
      CHECK_MESSAGE(std::memcmp(all.data(), first.data(), all.size() * sizeof(float)) == 0, describe(s));
    }
  }
}

TEST_CASE_TEMPLATE("conv2d: more images than chunks of the weight's gradient, and large weights of few channels", T,
                   float, double) {
  check<T>(shape(37, 3, 6, 6, 4, {.pad = 1}));
  check<T>(shape(37, 6, 5, 5, 4, {.groups = 2}));
  check<T>(shape(37, 9, 17, 18, 10, {.pad = 1}));  // one image at a time
  check<T>(shape(50, 9, 9, 9, 10, {.pad = 1}));    // three images at a time
  check<T>(shape(2, 300, 3, 3, 4, {.pad = 1}));
}

TEST_CASE_TEMPLATE("conv2d: groups whose kernel covers the whole image", T, float, double) {
  check<T>(shape(3, 8, 3, 3, 16, {.groups = 2}));
  check<T>(shape(3, 6, 3, 3, 4, {.groups = 2}));
  check<T>(shape(3, 16, 3, 3, 32, {.groups = 2}));
}
