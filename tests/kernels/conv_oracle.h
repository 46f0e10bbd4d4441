#pragma once
// Convolutions on raw pointers compared with simple loops in double precision, with each instruction set.

#include "../../kernels/cpu/conv/conv.h"
#include "kernels/on_every_target.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace levin::test {

using kernels::cpu::Conv2dShape;

struct Window {
  int64_t kernel_h = 3, kernel_w = 3, stride = 1, pad = 0, dilation = 1, groups = 1, extra = 0;
};

/// `extra` rows and columns of the input lie beyond the last window, as with a transposed convolution's output padding.
inline Conv2dShape shape(int64_t batch, int64_t in, int64_t h, int64_t w, int64_t out, const Window& k) {
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

inline std::string describe(const Conv2dShape& s) {
  const auto text = [](int64_t x) { return std::to_string(x) + " "; };
  return "batch " + text(s.batch) + "in " + text(s.in_channels) + text(s.in_h) + text(s.in_w) + "out " +
         text(s.out_channels) + text(s.out_h) + text(s.out_w) + "kernel " + text(s.kernel_h) + text(s.kernel_w) +
         "stride " + text(s.stride_h) + "pad " + text(s.pad_h) + "dilation " + text(s.dilation_h) + "groups " +
         text(s.groups);
}

inline std::size_t at(int64_t i) { return static_cast<std::size_t>(i); }

/// A tensor followed by guards, its exact value, and the sum of magnitudes and number of terms of each element.
template <class T>
struct Result {
  static constexpr int64_t guard = 64;
  int64_t size;
  std::vector<T> got;
  std::vector<double> exact, magnitude, terms;

  explicit Result(int64_t n) : size(n), got(at(n + guard), T(-77)), exact(at(n)), magnitude(at(n)), terms(at(n)) {
    poison();
  }
  void poison() { std::fill_n(got.begin(), size, std::numeric_limits<T>::quiet_NaN()); }  // overwritten, never read
  [[gnu::always_inline]] void add(int64_t i, double term) {  // the tests spend their time here
    exact.data()[i] += term;
    magnitude.data()[i] += std::abs(term);
    terms.data()[i] += 1;
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
      const int64_t first = y / s.out_plane() / s.out_channels * s.in_channels + o / s.group_out() * s.group_in();
      int64_t tap = o * s.taps();
      for (int64_t c = 0; c < s.group_in(); ++c) {
        for (int64_t ky = 0; ky < s.kernel_h; ++ky) {
          const int64_t iy = oy * s.stride_h + ky * s.dilation_h - s.pad_h;
          for (int64_t kx = 0; kx < s.kernel_w; ++kx, ++tap) {
            const int64_t ix = ox * s.stride_w + kx * s.dilation_w - s.pad_w;
            if (iy >= 0 && iy < s.in_h && ix >= 0 && ix < s.in_w) f(((first + c) * s.in_h + iy) * s.in_w + ix, tap, y);
          }
        }
      }
    }
  }

  std::string verdict() const {
    Result<T> y(static_cast<int64_t>(dy.size())), dx(static_cast<int64_t>(x.size())),
        dw(static_cast<int64_t>(w.size()));
    const T *const px = x.data(), *const pw = w.data(), *const py = dy.data();
    each_product([&](int64_t xi, int64_t wi, int64_t yi) {
      const auto vx = static_cast<double>(px[xi]), vw = static_cast<double>(pw[wi]), vy = static_cast<double>(py[yi]);
      y.add(yi, vx * vw);
      dx.add(xi, vy * vw);
      dw.add(wi, vy * vx);
    });
    Result<T> plain = y;
    for (int64_t i = 0; i < y.size; ++i) {
      const int64_t channel = i / s.out_plane() % s.out_channels;
      y.add(i, static_cast<double>(b[at(channel)]));
    }
    std::string wrong;
    on_every_target([&] {
      for (Result<T>* r : {&y, &plain, &dx, &dw}) r->poison();
      conv2d_forward(s, x.data(), w.data(), b.data(), y.got.data());
      conv2d_forward(s, x.data(), w.data(), static_cast<const T*>(nullptr), plain.got.data());
      conv2d_backward_input(s, dy.data(), w.data(), dx.got.data());
      conv2d_backward_weight(s, x.data(), dy.data(), dw.got.data());
      for (const std::string& text :
           {y.verdict("y"), plain.verdict("y without bias"), dx.verdict("dx"), dw.verdict("dw")}) {
        if (wrong.empty()) wrong = text;
      }
    });
    return wrong;
  }
};

template <class T>
void check(const Conv2dShape& s) {
  const std::string verdict = Case<T>(s).verdict();
  CHECK_MESSAGE(verdict.empty(), describe(s) << ": " << verdict);
}

}  // namespace levin::test
