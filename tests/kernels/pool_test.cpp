// Pooling: ties, NaN and infinities, bits on any number of threads, the byte and the wide form of the indices.

#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>
#include <levin/kernels/pool.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using namespace levin;

namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Outcome {
  Tensor y, dx;
};

Outcome max_and_gradient(const Tensor& x, Pair kernel, const MaxPool2dOptions& o) {
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

TEST_CASE("max_pool2d: the vector forms equal the plain one at every width") {
  manual_seed(21);
  for (const int64_t width : {2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 34, 63, 64, 65, 67, 130})
    for (const DType dtype : {kFloat, kDouble}) {
      const Tensor x = randn({3, 5, width}, {.dtype = dtype});
      for (const int64_t stride : {1, 2}) {
        const Tensor windows = x.unfold(2, 2, stride).unfold(1, 2, 2);  // (3, rows, columns, 2, 2)
        const Tensor expected = amax(windows.contiguous().flatten(3), {3});
        const Tensor y = max_pool2d(x, 2, {.stride = Pair(2, stride)});
        CHECK(y.to_vector<double>() == expected.to_vector<double>());
        const Tensor mean_ = avg_pool2d(x, 2, {.stride = Pair(2, stride)});
        const auto wanted = mean(windows.contiguous().flatten(3), {3}).to_vector<double>();
        const auto found = mean_.to_vector<double>();
        for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-6));
      }
    }
}

TEST_CASE("max_pool2d: every gradient lands on an element of the right value") {
  manual_seed(22);
  const Tensor x = randn({2, 2, 37, 41});
  for (const auto& [kernel, options] : {std::pair<int64_t, MaxPool2dOptions>{2, {}},
                                        {3, {.stride = 2, .padding = 1}},
                                        {17, {.stride = 5, .padding = 8}}}) {
    const Tensor leaf = x.detach().requires_grad_();
    const Tensor y = max_pool2d(leaf, kernel, options);
    const Tensor counts = grad({y}, {leaf}, {}, {ones_like(y)})[0];
    CHECK(counts.sum().item<double>() == static_cast<double>(y.numel()));
    // The sum of the chosen elements is the sum of the outputs.
    CHECK((counts * x).to(kDouble).sum().item<double>() ==
          doctest::Approx(y.to(kDouble).sum().item<double>()).epsilon(1e-6));
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

TEST_CASE("indices are bytes where the window has at most 256 elements") {
  CHECK(kernels::PoolGeometry{.kernel_h = 16, .kernel_w = 16}.index_type() == kUInt8);
  CHECK(kernels::PoolGeometry{.kernel_h = 16, .kernel_w = 17}.index_type() == kInt32);
  // 17 x 17 = 289: the largest lies at place 288.
  const auto last = max_and_gradient(arange(289, {.dtype = kFloat}).view({1, 17, 17}), 17, {});
  CHECK(last.dx.to_vector<float>()[288] == 1.0f);
  CHECK(last.dx.sum().item<float>() == 1.0f);
}
