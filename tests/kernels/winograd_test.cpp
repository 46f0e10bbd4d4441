// Winograd's convolution: which shapes it serves, values on both sides of each limit, and values that are not finite.
#include "../../kernels/cpu/conv/winograd_weight.h"
#include "kernels/conv_oracle.h"
#include "support/small_cases.h"
#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/ops.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::kernels::cpu;
namespace winograd = levin::kernels::cpu::detail;
using levin::test::at;
using levin::test::describe;
using levin::test::shape;

namespace {

/// Which of y, dx and dw are computed by Winograd's convolution, as "y dx dw".
std::string served(const Conv2dShape& s) {
  std::string names;
  const auto add = [&](const char* name, bool serves) {
    if (serves) names += (names.empty() ? "" : " ") + std::string(name);
  };
  add("y", winograd::serves_winograd(s, winograd::winograd_forward(s), winograd::WinogradPass::result));
  add("dx", winograd::serves_winograd(s, winograd::winograd_backward(s), winograd::WinogradPass::result));
  add("dw", winograd::serves_winograd(s, winograd::winograd_forward(s), winograd::WinogradPass::weight_gradient));
  return names;
}

void check(const Conv2dShape& s, const std::string& expected, bool compares_values = true) {
  CHECK_MESSAGE(served(s) == expected, describe(s));
  if (expected.empty() || !compares_values) return;  // conv_test.cpp has the other paths' values
  const std::string verdict = test::Case<float>(s).verdict();
  CHECK_MESSAGE(verdict.empty(), describe(s) << ": " << verdict);
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInfinity = std::numeric_limits<float>::infinity();

/// Images whose results Winograd's convolution computes.
struct Images {
  Conv2dShape s;
  test::Case<float> c{s};
  std::vector<float> y = std::vector<float>(c.dy.size()), dx = std::vector<float>(c.x.size()),
                     dw = std::vector<float>(c.w.size());

  explicit Images(const Conv2dShape& shape_) : s(shape_) { REQUIRE(served(s) == "y dx dw"); }
  void run() {
    conv2d_forward(s, c.x.data(), c.w.data(), c.b.data(), y.data());
    conv2d_backward_input(s, c.dy.data(), c.w.data(), dx.data());
    conv2d_backward_weight(s, c.x.data(), c.dy.data(), dw.data());
  }
  /// Compares the results on every instruction set with sums of the same values in double precision.
  std::string verdict() {
    std::vector<double> exact_y(y.size()), exact_dx(dx.size()), exact_dw(dw.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      exact_y[i] = static_cast<double>(c.b[i / at(s.out_plane()) % at(s.out_channels)]);
    c.each_product([&](int64_t xi, int64_t wi, int64_t yi) {
      const auto vx = static_cast<double>(c.x[at(xi)]), vw = static_cast<double>(c.w[at(wi)]),
                 vy = static_cast<double>(c.dy[at(yi)]);
      exact_y[at(yi)] += vx * vw;
      exact_dx[at(xi)] += vy * vw;
      exact_dw[at(wi)] += vx * vy;
    });
    std::string wrong;
    const auto compare = [&](const char* name, const std::vector<float>& got, const auto& exact, int64_t terms) {
      const Tensor tensor = from_data(got, {static_cast<int64_t>(got.size())});
      const std::string text = test::compare(tensor, exact, {.ulps = 4, .scale = 1}, terms);
      if (!text.empty()) wrong += std::string(name) + " " + text + "; ";
    };
    test::on_every_target([&] {
      run();
      compare("y", y, exact_y, s.taps() + 1);
      compare("dx", dx, exact_dx, s.out_channels * s.kernel());
      compare("dw", dw, exact_dw, s.batch * s.out_plane());
    });
    return wrong;
  }
};

const Conv2dShape kPlain = shape(7, 18, 13, 14, 17, {.pad = 1});
const Conv2dShape kWide = shape(4, 17, 12, 13, 33, {.kernel_h = 5, .kernel_w = 5, .pad = 2});
const Conv2dShape kStrided = shape(16, 32, 14, 18, 48, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = 1});

void check_with(const Images& clean, const char* where, float value, std::vector<float> test::Case<float>::*values,
                int64_t i) {
  Images spoiled = clean;
  (spoiled.c.*values)[at(i)] = value;
  const std::string verdict = spoiled.verdict();
  CHECK_MESSAGE(verdict.empty(), describe(clean.s), ": ", value, " in ", where, " at ", i, ": ", verdict);
}

}  // namespace

TEST_CASE("winograd: values on both sides of each limit") {
  check(shape(6, 16, 16, 16, 16, {.pad = 1}), "y dx dw");
  check(shape(6, 15, 16, 16, 16, {.pad = 1}), "");  // channels
  check(shape(6, 16, 16, 16, 15, {.pad = 1}), "");
  check(shape(3, 16, 16, 16, 16, {.pad = 1}), "y dx");  // tiles
  check(shape(1, 16, 28, 25, 16, {.pad = 1}), "y dx");
  check(shape(1, 16, 24, 28, 16, {.pad = 1}), "");
  check(shape(16, 16, 10, 9, 16, {.pad = 1}), "y dx dw");  // images that fill half of their tiles, and less
  check(shape(16, 16, 9, 9, 16, {.pad = 1}), "y dx dw");
  check(shape(24, 16, 5, 7, 16, {.pad = 1}), "y dx dw");
  check(shape(24, 16, 5, 6, 16, {.pad = 1}), "");
  check(shape(6, 16, 16, 16, 48, {}), "y dx dw");  // no padding: a corner of dx has one pixel's terms
  check(shape(6, 16, 16, 16, 47, {}), "y dw");
  check(shape(6, 48, 15, 15, 16, {.pad = 2}), "y dx dw");
  check(shape(6, 47, 15, 15, 16, {.pad = 2}), "dx");
  check(shape(6, 16, 14, 14, 16, {.pad = 3}), "dx");
  check(shape(6, 32, 16, 16, 32, {.pad = 1, .groups = 2}), "");
  check(shape(6, 16, 31, 31, 16, {.stride = 2, .pad = 1}), "");
  check(shape(6, 16, 18, 18, 16, {.pad = 1, .dilation = 2}), "");
  check(shape(6, 16, 16, 18, 16, {.kernel_w = 5, .pad = 1}), "");
  check(shape(6, 16, 17, 17, 32, {.pad = 1, .extra = 1}), "");
}

TEST_CASE("winograd: a stride of 2 on both sides of each limit") {
  const bool all = !test::small_cases();
  const auto strided = [](int64_t batch, int64_t in, int64_t h, int64_t w, int64_t out, int64_t pad) {
    return shape(batch, in, h, w, out, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = pad});
  };
  check(strided(16, 32, 16, 16, 48, 1), "y dx");
  check(strided(15, 32, 16, 16, 48, 1), "");  // tiles
  check(strided(16, 32, 16, 16, 47, 1), "y", all);  // a corner of dx has one pixel's terms
  check(strided(16, 31, 16, 16, 48, 1), "");  // channels
  check(strided(16, 33, 16, 16, 50, 1), "dx", all);
  check(strided(16, 32, 17, 16, 48, 1), "");  // a row that no window reaches
  check(strided(17, 32, 20, 16, 48, 0), "y dx dw", all);
  check(strided(16, 48, 14, 14, 51, 2), "y dx", all);
  CHECK(served(strided(16, 64, 12, 12, 33, 3)) == "dx");
  check(strided(1, 32, 80, 78, 32, 1), "y dw");
}

TEST_CASE("winograd: kernels of 5 x 5 on both sides of each limit") {
  const auto wide = [](int64_t batch, int64_t in, int64_t h, int64_t w, int64_t out, int64_t pad) {
    return shape(batch, in, h, w, out, {.kernel_h = 5, .kernel_w = 5, .pad = pad});
  };
  check(wide(2, 16, 10, 10, 16, 2), "y dx");
  check(wide(1, 16, 10, 12, 16, 2), "");  // tiles
  check(wide(4, 18, 11, 10, 17, 2), "y dx dw");
  check(wide(4, 15, 11, 10, 17, 2), "");            // channels
  check(wide(4, 16, 14, 13, 32, 0), "y dx dw");     // no padding: a corner of dx has one pixel's terms
  check(wide(4, 17, 13, 15, 31, 0), "y dw");
  check(wide(4, 33, 7, 8, 16, 4), "y dx dw");
  check(wide(4, 31, 7, 8, 16, 4), "dx");
  check(wide(4, 33, 9, 9, 49, 1), "y dx", !test::small_cases());
  check(shape(4, 16, 11, 10, 17, {.kernel_h = 5, .kernel_w = 5, .stride = 2, .pad = 2}), "");
}

TEST_CASE("winograd: more channels need fewer tiles, and their weights do not fit into a cache") {
  const auto layer = [](int64_t batch, int64_t channels) {  // one tile an image
    return shape(batch, channels, 4, 4, channels, {.pad = 1});
  };
  check(layer(24, 64), "y dx");
  check(layer(23, 64), "");
  CHECK(served(layer(64, 64)) == "y dx dw");
  CHECK(served(layer(63, 64)) == "y dx");
  check(layer(16, 96), "y dx");
  check(layer(15, 96), "");
  check(layer(43, 96), "y dx dw", !test::small_cases());
  CHECK(served(layer(24, 512)) == "y dx dw");
  CHECK(served(layer(16, 512)) == "y dx");
  const auto strided = [](int64_t batch, int64_t channels) {
    return shape(batch, channels, 16, 16, channels, {.kernel_h = 4, .kernel_w = 4, .stride = 2, .pad = 1});
  };
  CHECK(served(strided(16, 96)) == "y dx");
  CHECK(served(strided(16, 128)) == "y dx dw");
}

TEST_CASE("winograd: channels that are no multiple of a vector, tiles over each edge, one or several images a task") {
  const bool all = !test::small_cases();
  check(shape(4, 33, 19, 20, 49, {}), "y dx dw");
  check(shape(4, 33, 18, 17, 34, {.pad = 1}), "y dx dw", all);
  check(shape(4, 49, 17, 15, 19, {.pad = 2}), "y dx dw");
  check(shape(1, 33, 39, 40, 32, {.pad = 1}), "y dx dw", all);
  check(shape(25, 17, 8, 7, 66, {.pad = 1}), "y dx dw");
  check(shape(1, 16, 9, 170, 17, {.pad = 1}), "y dx dw");  // one row of tiles at a time
  check(shape(1, 70, 26, 25, 67, {.pad = 1}), "y dx", all);
}

TEST_CASE("winograd: a value that is not finite, or overflows in a tile, reaches its own window alone") {
  const Images clean(kPlain);
  const Conv2dShape& s = clean.s;
  const int64_t plane = (3 * s.in_channels + 10) * s.in_plane();
  for (const float value : {kNan, -kInfinity, 3e38f}) {
    check_with(clean, "x", value, &test::Case<float>::x, plane + 5 * s.in_w + 6);
    check_with(clean, "the weight", value, &test::Case<float>::w, 4 * s.taps() + 100);
    check_with(clean, "the gradient of y", value, &test::Case<float>::dy, 5 * s.out_plane() + 33);
    check_with(clean, "the bias", value, &test::Case<float>::b, 3);
  }
  check_with(clean, "x", kInfinity, &test::Case<float>::x, plane);
  check_with(clean, "x", kInfinity, &test::Case<float>::x, plane + s.in_plane() - 1);
  const Images wide(kWide);
  check_with(wide, "x", kNan, &test::Case<float>::x, 30 * wide.s.in_plane() + 5 * wide.s.in_w + 6);
  check_with(wide, "the weight", kInfinity, &test::Case<float>::w, 4 * wide.s.taps() + 112);
  check_with(wide, "the gradient of y", kInfinity, &test::Case<float>::dy, 3 * wide.s.out_plane() + 44);
  const Images strided(kStrided);
  check_with(strided, "x", kNan, &test::Case<float>::x, plane + 5 * s.in_w + 6);
  check_with(strided, "the gradient of y", kInfinity, &test::Case<float>::dy, 5 * strided.s.out_plane() + 33);
}

TEST_CASE("winograd: other images keep their bits where one has a value that is not finite") {
  Images clean(kPlain), spoiled(kPlain);
  clean.run();
  spoiled.c.x[at((3 * spoiled.s.in_channels + 10) * spoiled.s.in_plane() + 50)] = kNan;
  spoiled.run();
  const auto image = spoiled.s.out_channels * spoiled.s.out_plane();
  CHECK(std::equal(clean.y.begin(), clean.y.begin() + 3 * image, spoiled.y.begin()));
  CHECK(std::equal(clean.y.begin() + 4 * image, clean.y.end(), spoiled.y.begin() + 4 * image));
  CHECK(!std::equal(clean.y.begin() + 3 * image, clean.y.begin() + 4 * image, spoiled.y.begin() + 3 * image));
}

TEST_CASE("winograd: first and second derivatives of a penalty on gradients are those in double precision") {
  manual_seed(17);
  struct Layer {
    Shape x, w;
    Conv2dOptions options;
  };
  for (const auto& [x_sizes, w_sizes, options] : {Layer{{5, 33, 16, 17}, {50, 33, 3, 3}, {}},
                                                 Layer{{5, 33, 16, 17}, {34, 33, 3, 3}, {.padding = 1}},
                                                 Layer{{4, 33, 14, 13}, {34, 33, 5, 5}, {.padding = 1}},
                                                 Layer{{25, 48, 16, 14}, {50, 48, 4, 4}, {.stride = 2, .padding = 1}}
                                                }) {
    const Tensor x = rand(x_sizes) * 2 - 1, w = rand(w_sizes) * 2 - 1;
    const auto derivatives = [&, &o = options](DType dtype) {
      const Tensor image = x.to(dtype).requires_grad_(), weight = w.to(dtype).requires_grad_();
      const Tensor y = conv2d(image, weight, {}, o);
      const std::vector<Tensor> first = grad({(y * y).sum()}, {image, weight}, {.create_graph = true});
      std::vector<Tensor> all = grad({first[0].sum() + (first[1] * first[1]).mean()}, {image, weight}, {});
      all.insert(all.end(), {y.detach(), first[0].detach(), first[1].detach()});
      return all;
    };
    const std::vector<Tensor> single = derivatives(kFloat), exact = derivatives(kDouble);
    for (std::size_t i = 0; i < single.size(); ++i) {
      const double largest = exact[i].abs().max().item<double>();
      const std::string wrong = test::compare(single[i], exact[i], {.ulps = 0, .scale = largest}, 8);
      CHECK_MESSAGE(wrong.empty(), "derivative ", i, " of ", to_string(w_sizes), ": ", wrong);
    }
  }
}
