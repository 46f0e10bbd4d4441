// Pooling: ties, NaN and infinities, bits on any number of threads, byte and wide indices, the ends of tensors.

#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>
#include <levin/kernels/pool.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "on_every_target.h"
#include "support/comparison.h"
#include "support/tolerance.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Outcome {
  Tensor y, dx;
};

Outcome max_and_gradient(const Tensor& x, Tuple<2> kernel, const MaxPool2dOptions& o) {
  const Tensor leaf = x.detach().requires_grad_();
  const Tensor y = max_pool2d(leaf, kernel, o);
  return {y.detach(), grad({y}, {leaf}, {}, {arange(1, y.numel() + 1, 1, {.dtype = x.dtype()}).view(y.sizes())})[0]};
}

}  // namespace

TEST_CASE("max_pool2d: the first of a tie and the last NaN get the gradient") {
  const auto ties = max_and_gradient(ones({1, 1, 2, 4}), 2, {});
  CHECK(ties.dx.to_vector<float>() == std::vector<float>{1, 0, 2, 0, 0, 0, 0, 0});
  const auto nans = max_and_gradient(from_data<float>({kNaN, 5, 1, kNaN, 3, 1, kNaN, 2}, {1, 1, 2, 4}), 2, {});
  for (const float v : nans.y.to_vector<float>()) CHECK(std::isnan(v));
  CHECK(nans.dx.to_vector<float>() == std::vector<float>{1, 0, 0, 0, 0, 0, 2, 0});
  const auto low = max_and_gradient(full({1, 1, 2, 2}, -kInfinity), 2, {});
  CHECK(low.y.item<float>() == -kInfinity);
  CHECK(low.dx.to_vector<float>() == std::vector<float>{1, 0, 0, 0});
}

TEST_CASE("max_pool2d: the vectorised code matches the scalar code at every width") {
  manual_seed(21);
  for (const int64_t width : {2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 34, 63, 64, 65, 67, 130})
    for (const DType dtype : {kFloat, kDouble}) {
      const Tensor x = randn({3, 5, width}, {.dtype = dtype});
      for (const int64_t stride : {1, 2}) {
        const Tensor windows = x.unfold(2, 2, stride).unfold(1, 2, 2);  // (3, rows, columns, 2, 2)
        const Tensor expected = amax(windows.contiguous().flatten(3), {3});
        const Tensor y = max_pool2d(x, 2, {.stride = Tuple<2>(2, stride)});
        CHECK(y.to_vector<double>() == expected.to_vector<double>());
        const Tensor mean_ = avg_pool2d(x, 2, {.stride = Tuple<2>(2, stride)});
        const auto wanted = mean(windows.contiguous().flatten(3), {3}).to_vector<double>();
        const auto found = mean_.to_vector<double>();
        CHECK(largest_difference(found, wanted) <= 16 * epsilon(dtype));
      }
    }
}

TEST_CASE("max_pool2d: windows of 2 x 2 that the border cuts off, on planes of any width") {
  manual_seed(25);
  for (const int64_t width : {1, 3, 8, 9, 13, 27, 31, 33})
    for (const int64_t height : {1, 4, 7}) {
      const Tensor x = randn({3, 2, height, width});
      // The same as whole windows of an image with a border of minus infinity.
      const Tensor padded = pad(x, {0, width % 2, 0, height % 2}, -kInfinity);
      const Outcome whole = max_and_gradient(padded, 2, {});
      const Outcome cut = max_and_gradient(x, 2, {.ceil_mode = true});
      CHECK(cut.y.to_vector<float>() == whole.y.to_vector<float>());
      CHECK(cut.dx.to_vector<float>() ==
            whole.dx.narrow(2, 0, height).narrow(3, 0, width).contiguous().to_vector<float>());
      CHECK(max_pool2d(x, 2, {.ceil_mode = true}).to_vector<float>() == whole.y.to_vector<float>());
    }
}

TEST_CASE("max_pool2d: windows of 2 x 2 in several chunks, each of which ends where its rows end") {
  manual_seed(26);
  Stream stream(kCpu);
  on_every_target([&] {
    for (const int64_t width : {2, 3, 7, 8, 13, 14, 16, 17, 24, 31, 33, 40, 70}) {
      const int64_t planes = 65, h = 15, ow = width / 2, oh = 7, sentinels = 32;  // as many rows as one chunk, and more
      const kernels::PoolGeometry g{.planes = planes,
                                    .h = h,
                                    .w = width,
                                    .oh = oh,
                                    .ow = ow,
                                    .kernel_h = 2,
                                    .kernel_w = 2,
                                    .stride_h = 2,
                                    .stride_w = 2};
      const int64_t outputs = planes * oh * ow, inputs = planes * h * width;
      const Tensor x = randn({planes, h, width});
      const Tensor y = full({outputs + sentinels}, 7.5f), dx = full({inputs + sentinels}, 7.5f);
      const Tensor places = full({outputs + sentinels}, 77, {.dtype = kUInt8});
      const Tensor inner_y = y.narrow(0, 0, outputs), inner_places = places.narrow(0, 0, outputs);
      kernels::max_pool2d({inner_y.tensor_view(), inner_places.tensor_view(), x.tensor_view(), g}, stream);
      const Tensor dy = arange(1, outputs + 1, 1, {.dtype = kFloat});
      kernels::max_pool2d_backward(
          {dx.narrow(0, 0, inputs).tensor_view(), dy.tensor_view(), inner_places.tensor_view(), g}, stream);

      const auto from = x.to_vector<float>(), found = y.to_vector<float>(), gradient = dx.to_vector<float>();
      const auto chosen = places.to_vector<std::uint8_t>();
      std::vector<float> expected(from.size(), 0.0f);
      int64_t wrong = 0;
      for (int64_t o = 0; o < outputs; ++o) {
        const int64_t first = o / (oh * ow) * h * width + o / ow % oh * 2 * width + o % ow * 2;
        std::size_t best = static_cast<std::size_t>(first);
        for (const int64_t other : {first + 1, first + width, first + width + 1})
          if (from[static_cast<std::size_t>(other)] > from[best]) best = static_cast<std::size_t>(other);
        const int64_t step = static_cast<int64_t>(best) - first, place = step >= width ? 2 + step - width : step;
        wrong += found[static_cast<std::size_t>(o)] != from[best] || chosen[static_cast<std::size_t>(o)] != place;
        expected[best] = static_cast<float>(o + 1);
      }
      INFO("width ", width);
      CHECK(wrong == 0);
      CHECK(std::vector<float>(gradient.begin(), gradient.end() - sentinels) == expected);
      CHECK(std::vector<float>(found.end() - sentinels, found.end()) == std::vector<float>(sentinels, 7.5f));
      CHECK(std::vector<float>(gradient.end() - sentinels, gradient.end()) == std::vector<float>(sentinels, 7.5f));
      CHECK(std::vector<std::uint8_t>(chosen.end() - sentinels, chosen.end()) ==
            std::vector<std::uint8_t>(sentinels, std::uint8_t{77}));
    }
  });
}

TEST_CASE("max_pool2d: every gradient goes to an element with the maximal value") {
  manual_seed(22);
  const Tensor x = randn({2, 2, 37, 41});
  for (const auto& [kernel, options] : {std::pair<Tuple<2>, MaxPool2dOptions>{2, {}},
                                        {{1, 2}, {}},
                                        {{4, 2}, {.stride = Tuple<2>(1, 2), .dilation = Tuple<2>(3, 1)}},
                                        {3, {.stride = 2, .padding = 1}},
                                        {17, {.stride = 5, .padding = 8}}}) {
    const Tensor leaf = x.detach().requires_grad_();
    const Tensor y = max_pool2d(leaf, kernel, options);
    const Tensor counts = grad({y}, {leaf}, {}, {ones_like(y)})[0];
    CHECK(counts.sum().item<double>() == static_cast<double>(y.numel()));
    // The sum of the chosen elements is the sum of the outputs.
    CHECK((counts * x).to(kDouble).sum().item<double>() ==
          approx(y.to(kDouble).sum().item<double>(), {.relative = 1e-6}));
  }
}

TEST_CASE("pooling has the same bits on any number of threads") {
  manual_seed(23);
  const Tensor x = randn({7, 5, 33, 35});
  const int before = num_threads();
  for (const MaxPool2dOptions& o : {MaxPool2dOptions{}, MaxPool2dOptions{.stride = 2, .padding = 1}}) {
    set_num_threads(1);
    const Outcome expected = max_and_gradient(x, 3, o);
    const Tensor average = avg_pool2d(x, 3, {.stride = o.stride, .padding = o.padding});
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      const Outcome again = max_and_gradient(x, 3, o);
      CHECK(again.y.to_vector<float>() == expected.y.to_vector<float>());
      CHECK(again.dx.to_vector<float>() == expected.dx.to_vector<float>());
      CHECK(avg_pool2d(x, 3, {.stride = o.stride, .padding = o.padding}).to_vector<float>() ==
            average.to_vector<float>());
    }
  }
  set_num_threads(before);
}

TEST_CASE("indices are bytes if the window has at most 256 elements") {
  CHECK(kernels::PoolGeometry{.kernel_h = 16, .kernel_w = 16}.index_type() == kUInt8);
  CHECK(kernels::PoolGeometry{.kernel_h = 16, .kernel_w = 17}.index_type() == kInt32);
  // 17 x 17 = 289: the maximum is at index 288.
  const auto last = max_and_gradient(arange(289, {.dtype = kFloat}).view({1, 17, 17}), 17, {});
  CHECK(last.dx.to_vector<float>()[288] == 1.0f);
  CHECK(last.dx.sum().item<float>() == 1.0f);
}

TEST_CASE("pooling with strides that are not vectorised matches its definition") {
  manual_seed(24);
  for (const int64_t width : {5, 16, 33, 70})
    for (const int64_t stride : {3, 4, 5})
      for (const DType dtype : {kFloat, kDouble}) {
        const Tensor x = randn({3, 9, width}, {.dtype = dtype});
        const Tensor windows = x.unfold(2, 3, stride).unfold(1, 3, 2).contiguous().flatten(3);
        CHECK(max_pool2d(x, 3, {.stride = Tuple<2>(2, stride)}).to_vector<double>() ==
              amax(windows, {3}).to_vector<double>());
        const auto wanted = mean(windows, {3}).to_vector<double>();
        const auto found = avg_pool2d(x, 3, {.stride = Tuple<2>(2, stride)}).to_vector<double>();
        REQUIRE(found.size() == wanted.size());
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(std::abs(found[i] - wanted[i]) <= 1e-6);
      }
}

TEST_CASE("max_pool2d: windows across the border see NaN, and those of minus infinity keep their gradient inside") {
  for (const int64_t width : {4, 40}) {
    const Tensor x = zeros({1, 1, 5, width});
    x.select(3, 0).fill_(kNaN);
    x.select(3, static_cast<int>(width) - 1).fill_(kNaN);
    x.select(2, 0).fill_(kNaN);
    const Tensor y = max_pool2d(x, 3, {.stride = 1, .padding = 1});
    for (const auto& [axis, place] : {std::pair(3, int64_t{0}), std::pair(3, width - 1), std::pair(2, int64_t{0})})
      for (const float v : y.select(axis, static_cast<int>(place)).to_vector<float>()) CHECK(std::isnan(v));
  }
  const auto low = max_and_gradient(full({2, 1, 6, 6}, -kInfinity), 3, {.stride = 2, .padding = 1});
  for (const float v : low.y.to_vector<float>()) CHECK(v == -kInfinity);
  // The first element inside each window takes its gradient: rows and columns 0, 1 and 3.
  std::vector<float> expected(72, 0.0f);
  float number = 1;
  for (const std::size_t plane : {0, 1})
    for (const std::size_t row : {0, 1, 3})
      for (const std::size_t column : {0, 1, 3}) expected[plane * 36 + row * 6 + column] = number++;
  CHECK(low.dx.to_vector<float>() == expected);
}
