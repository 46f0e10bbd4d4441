// Every rung of the softmax ladder, and the launchers at the lengths where they switch kernels, compared with softmax
// in double.

#include "kernels/cuda/softmax/ladder.h"
#include "support/comparison.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/core/generator.h>
#include <levin/kernels/cuda.h>
#include <levin/kernels/loss.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace levin;
using namespace levin::test;

namespace {

Tensor random_values(const Shape& sizes, DType dtype, std::uint64_t seed = 3) {
  Generator g(seed);
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (double& x : v) x = 8.0 * g.uniform() - 4.0;
  return from_data(v, sizes, {.dtype = dtype});
}

/// Computes softmax of rows, or its logarithm, with simple loops.
std::vector<double> softmax_of(const Tensor& x, bool logarithm) {
  std::vector<double> v = x.to_vector<double>();
  const int64_t rows = x.size(0), n = x.size(1);
  for (int64_t r = 0; r < rows; ++r) {
    double* const row = v.data() + r * n;
    const double top = n > 0 ? *std::max_element(row, row + n) : 0.0;
    long double wide = 0.0L;
    for (int64_t i = 0; i < n; ++i) wide += std::exp(static_cast<long double>(row[i] - top));
    const double sum = static_cast<double>(wide);
    for (int64_t i = 0; i < n; ++i) {
      row[i] = logarithm ? row[i] - top - std::log(sum) : std::exp(row[i] - top) / sum;
    }
  }
  return v;
}

const std::vector<Shape> kRows = {{1, 1},   {5, 31},   {3, 33},   {2, 1000}, {3, 0},    {0, 5},    {4, 64},
                                  {2, 512}, {1, 1024}, {2, 1032}, {1, 3001}, {1, 8200}, {1, 16384}};

template <class Table>
Tensor run_on_device(const Table& table, const Tensor& host) {
  const Tensor x = host.to(cuda(0));
  Tensor out = empty(host.sizes(), {.dtype = host.dtype(), .device = cuda(0)});
  Stream stream = current_stream(cuda(0));
  table(kernels::SoftmaxArgs{out.tensor_view(), x.tensor_view(), host.size(0), host.size(1), 1}, stream);
  return out.to(kCpu);
}

}  // namespace

TEST_CASE("every rung of the softmax ladder computes softmax of rows") {
  const auto rungs = kernels::cuda::softmax_rungs();
  CHECK(rungs.size() >= 6);
  for (const auto& rung : rungs) {
    CAPTURE(rung.name);
    int runs = 0;
    for (const DType dtype : {DType::f32, DType::f16}) {
      for (const Shape& sizes : kRows) {
        CAPTURE(to_string(sizes));
        const Tensor host = random_values(sizes, dtype), x = host.to(cuda(0));
        Tensor out = empty(sizes, {.dtype = dtype, .device = cuda(0)});
        const kernels::SoftmaxArgs args{out.tensor_view(), x.tensor_view(), sizes[0], sizes[1], 1};
        if (!rung.can(args)) continue;
        Stream stream = current_stream(cuda(0));
        rung.run(args, stream);
        CHECK(compare(out.to(kCpu), softmax_of(host, false), {.ulps = 8}) == "");
        ++runs;
      }
    }
    CHECK(runs >= 8);
  }
}

TEST_CASE("softmax and log_softmax of every floating type and length") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(std::string(name_of(dtype)));
    for (const Shape& sizes : {Shape{5, 31}, {2, 1000}, {1, 4100}, {1, 16640}, {1, 16641}}) {
      CAPTURE(to_string(sizes));
      const Tensor host = random_values(sizes, dtype);
      CHECK(compare(run_on_device(kernels::softmax, host), softmax_of(host, false), {.ulps = 8}) == "");
      CHECK(compare(run_on_device(kernels::log_softmax, host), softmax_of(host, true), {.ulps = 8, .scale = 4}) == "");
    }
  }
}

TEST_CASE("rows with infinities and NaN match the definition") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values = {1,         -kInfinity, 2, 1, 0,          nan,        2,          1,
                                      kInfinity, 0,          0, 0, -kInfinity, -kInfinity, -kInfinity, -kInfinity};
  const Tensor host = from_data(values, {4, 4}, {.dtype = kFloat32});
  for (const auto& rung : kernels::cuda::softmax_rungs()) {
    CAPTURE(rung.name);
    const std::vector<float> v = run_on_device(rung.run, host).to_vector<float>();
    CHECK(v[1] == 0.0f);
    CHECK(v[0] + v[2] + v[3] == approx(1.0, {.relative = 1e-6}));
    for (std::size_t i = 4; i < 16; ++i) {
      if (i != 9 && i != 10 && i != 11) CHECK_MESSAGE(std::isnan(v[i]), i);
    }
  }
}

TEST_CASE("gradients of softmax at the lengths where the kernel changes") {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16}) {
    CAPTURE(std::string(name_of(dtype)));
    for (const Shape& sizes : {Shape{3, 33}, {2, 640}, {1, 2050}, {1, 4104}, {1, 8704}, {1, 17000}}) {
      CAPTURE(to_string(sizes));
      const Tensor y = from_data(softmax_of(random_values(sizes, DType::f64), false), sizes, {.dtype = dtype});
      const Tensor g = random_values(sizes, dtype, 7), y_there = y.to(cuda(0)), g_there = g.to(cuda(0));
      Tensor dx = empty(sizes, {.dtype = dtype, .device = cuda(0)});
      Stream stream = current_stream(cuda(0));
      kernels::softmax_backward({dx.tensor_view(), g_there.tensor_view(), y_there.tensor_view(), sizes[0], sizes[1]},
                                stream);
      std::vector<double> expected = y.to_vector<double>();
      const std::vector<double> gs = g.to_vector<double>();
      for (int64_t r = 0; r < sizes[0]; ++r) {
        double sum = 0.0;
        const auto at = [&](int64_t i) { return static_cast<std::size_t>(r * sizes[1] + i); };
        for (int64_t i = 0; i < sizes[1]; ++i) sum += expected[at(i)] * gs[at(i)];
        for (int64_t i = 0; i < sizes[1]; ++i) expected[at(i)] *= gs[at(i)] - sum;
      }
      CHECK(compare(dx.to(kCpu), expected, {.ulps = 4, .scale = 1}) == "");
    }
  }
}

TEST_CASE("labels out of range are refused, and the error names the first") {
  std::vector<double> labels(1000, 3.0);
  labels[700] = 10.0, labels[800] = -1.0, labels[3] = -100.0;
  const Tensor bad = from_data(labels, {1000}, {.dtype = kInt64}).to(cuda(0));
  const Tensor good = bad.slice(0, {0, 700});
  Stream stream = current_stream(cuda(0));
  kernels::check_labels({bad.tensor_view(), 10, -100, "nll_loss"}, stream);
  CHECK_THROWS_WITH_AS(levin::cuda::synchronize(),
                       doctest::Contains("[nll_loss] target 10 at position 700 is outside [0, 10)"), IndexError);
  kernels::check_labels({good.tensor_view(), 10, -100, "nll_loss"}, stream);
  CHECK_NOTHROW(levin::cuda::synchronize());
}

TEST_CASE("cross-entropy of many classes, forward and backward") {
  constexpr int64_t rows = 3, classes = 3001;
  const Tensor host = random_values({rows, classes}, DType::f32), x = host.to(cuda(0));
  const Tensor target = from_data(std::vector<double>{5, -100, 3000}, {rows}, {.dtype = kInt64}).to(cuda(0));
  const TensorOptions there{.device = cuda(0)}, wide{.dtype = kFloat64, .device = cuda(0)};
  Tensor lse = empty({2, rows}, wide), norm = empty({}, wide), out = empty({}, there), g = ones({}, there);
  Tensor dx = empty({rows, classes}, there);
  kernels::CrossEntropyArgs args;
  args.x = x.tensor_view(), args.target = target.tensor_view();
  args.lse = lse.tensor_view(), args.norm = norm.tensor_view(), args.out = out.tensor_view();
  args.g = g.tensor_view(), args.dx = dx.tensor_view();
  args.batch = rows, args.classes = classes;
  Stream stream = current_stream(cuda(0));
  kernels::cross_entropy(args, stream);
  kernels::cross_entropy_backward(args, stream);
  const std::vector<double> logs = softmax_of(host, true);
  CHECK(norm.to(kCpu).item<double>() == 2.0);
  CHECK(compare(out.to(kCpu), {-(logs[5] + logs[2 * classes + 3000]) / 2.0}, {.ulps = 4}) == "");
  std::vector<double> gradient;
  for (int64_t i = 0; i < rows * classes; ++i) {
    const double hit = i == 5 || i == 2 * classes + 3000 ? 1.0 : 0.0;
    gradient.push_back(i / classes == 1 ? 0.0 : (std::exp(logs[static_cast<std::size_t>(i)]) - hit) / 2.0);
  }
  CHECK(compare(dx.to(kCpu), gradient, {.ulps = 16, .scale = 1}) == "");
}

TEST_CASE("a label out of range in a captured graph gives NaN, and the wait after the replay reports it") {
  const Tensor x = random_values({2, 5}, DType::f32).to(cuda(0));
  const Tensor target = from_data(std::vector<double>{1, 9}, {2}, {.dtype = kInt64}).to(cuda(0));
  const TensorOptions there{.device = cuda(0)}, wide{.dtype = kFloat64, .device = cuda(0)};
  Tensor lse = empty({2, 2}, wide), norm = empty({}, wide), out = zeros({}, there);
  kernels::CrossEntropyArgs args;
  args.x = x.tensor_view(), args.target = target.tensor_view();
  args.lse = lse.tensor_view(), args.norm = norm.tensor_view(), args.out = out.tensor_view();
  args.batch = 2, args.classes = 5;
  const levin::cuda::Stream own;
  own.wait_stream(levin::cuda::current_stream());
  const levin::cuda::StreamGuard guard(own);
  Stream stream = own;
  levin::cuda::Graph graph;
  graph.capture_begin();
  kernels::cross_entropy(args, stream);
  graph.capture_end();
  graph.replay();
  CHECK_THROWS_WITH_AS(own.synchronize(), doctest::Contains("[cross_entropy] target 9 at position 1 is outside [0, 5)"),
                       IndexError);
  CHECK(std::isnan(out.to(kCpu).item<float>()));
}
