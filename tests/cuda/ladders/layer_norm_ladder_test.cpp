// Every rung of the layer-norm ladder, and both norms at the shapes where their kernels change, compared with the CPU's
// in double.

#include "kernels/cuda/norm/ladder.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/core/generator.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

Tensor random_values(const Shape& sizes, std::uint64_t seed, DType dtype = kFloat32) {
  Generator g(seed);
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (double& x : v) x = 4.0 * g.uniform() - 1.0;
  return from_data(v, sizes, {.dtype = dtype});
}

const TensorOptions kThere{.device = cuda(0)}, kWide{.dtype = kFloat64};

struct Layer {
  Tensor y, mean, rstd;
};

/// Returns the CPU's layer norm in double.
Layer expected_layer(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const int64_t rows = x.size(0), n = x.size(1);
  Layer l{empty({rows, n}, kWide), empty({rows}, kWide), empty({rows}, kWide)};
  const Tensor wide = x.to(kFloat64), w = weight.to(kFloat64), b = bias.to(kFloat64);
  Stream stream(kCpu);
  kernels::layer_norm({l.y.tensor_view(), wide.tensor_view(), w.tensor_view(), b.tensor_view(), l.mean.tensor_view(),
                       l.rstd.tensor_view(), rows, n},
                      stream);
  return l;
}

std::string compared(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance, int64_t terms = 1) {
  return compare(actual.to(kCpu), expected.to_vector<double>(), tolerance, terms);
}

}  // namespace

TEST_CASE("every rung of the layer-norm ladder computes layer norm of rows") {
  const auto rungs = kernels::cuda::layer_norm_rungs();
  CHECK(rungs.size() >= 4);
  for (const auto& rung : rungs) {
    CAPTURE(rung.name);
    int runs = 0;
    for (const Shape& sizes :
         {Shape{3, 1}, {5, 31}, {2, 33}, {3, 1000}, {0, 8}, {6, 64}, {1, 1028}, {1, 4100}, {1, 9001}, {1, 16384}}) {
      CAPTURE(to_string(sizes));
      const Tensor host = random_values(sizes, 1), weight = random_values({sizes[1]}, 2),
                   bias = random_values({sizes[1]}, 3);
      const Tensor x = host.to(cuda(0)), w = weight.to(cuda(0)), b = bias.to(cuda(0));
      Tensor y = empty(sizes, kThere), mean = empty({sizes[0]}, kThere), rstd = empty({sizes[0]}, kThere);
      const kernels::LayerNormArgs args{y.tensor_view(),    x.tensor_view(),    w.tensor_view(), b.tensor_view(),
                                        mean.tensor_view(), rstd.tensor_view(), sizes[0],        sizes[1]};
      if (!rung.can(args)) continue;
      Stream stream = current_stream(cuda(0));
      rung.run(args, stream);
      const Layer expected = expected_layer(host, weight, bias);
      CHECK(compared(y, expected.y, {.ulps = 4, .scale = 4}) == "");
      CHECK(compared(mean, expected.mean, {.ulps = 1, .scale = 1}) == "");
      CHECK(compared(rstd, expected.rstd, {.ulps = 4}) == "");
      ++runs;
    }
    CHECK(runs >= 4);
  }
}

TEST_CASE("layer norm without weight, bias and statistics, and of rows too long for registers") {
  for (const Shape& sizes : {Shape{1, 16640}, {2, 40}, {3, 41}}) {
    CAPTURE(to_string(sizes));
    const Tensor host = random_values(sizes, 1), x = host.to(cuda(0));
    Tensor y = empty(sizes, kThere);
    Stream stream = current_stream(cuda(0));
    kernels::layer_norm({y.tensor_view(), x.tensor_view(), {}, {}, {}, {}, sizes[0], sizes[1]}, stream);
    const Layer expected = expected_layer(host, ones({sizes[1]}), zeros({sizes[1]}));
    CHECK(compared(y, expected.y, {.ulps = 4, .scale = 4}) == "");
  }
}

TEST_CASE("gradients of layer norm of many rows and of long rows") {
  for (const Shape& sizes : {Shape{37, 33}, {9, 64}, {5, 2100}, {3, 4104}, {2, 8300}, {0, 12}}) {
    CAPTURE(to_string(sizes));
    const int64_t rows = sizes[0], n = sizes[1];
    const Tensor x = random_values(sizes, 1), weight = random_values({n}, 2), g = random_values(sizes, 4);
    const Layer layer = expected_layer(x, weight, zeros({n}));
    const auto run = [&](DType dtype, Device device) {
      const auto moved = [&](const Tensor& t) { return t.to(dtype).to(device); };
      const Tensor x1 = moved(x), w1 = moved(weight), g1 = moved(g), mean = moved(layer.mean), rstd = moved(layer.rstd);
      const TensorOptions options{.dtype = dtype, .device = device};
      std::vector<Tensor> results{empty(sizes, options), empty({n}, options), empty({n}, options)};
      Stream stream = current_stream(device);
      kernels::layer_norm_backward(
          {results[0].tensor_view(), results[1].tensor_view(), results[2].tensor_view(), g1.tensor_view(),
           x1.tensor_view(), w1.tensor_view(), mean.tensor_view(), rstd.tensor_view(), rows, n},
          stream);
      return results;
    };
    const auto actual = run(kFloat32, cuda(0)), expected = run(kFloat64, kCpu);
    for (std::size_t i = 0; i < 3; ++i) {
      CAPTURE(i);
      CHECK(compared(actual[i], expected[i], {.ulps = 8, .scale = 4}, i == 0 ? 1 : std::max<int64_t>(1, rows)) == "");
    }
  }
}

TEST_CASE("batch norm of planes, of columns, and of one channel, forward and backward") {
  struct Form {
    int64_t batch, channels, spatial;
  };
  for (const Form& f : {Form{3, 5, 7}, {2, 4, 16}, {600, 3, 1}, {70, 40, 1}, {5, 1, 9}, {2, 2, 9000}}) {
    CAPTURE(f.batch);
    CAPTURE(f.spatial);
    const Shape sizes{f.batch, f.channels, f.spatial}, one{f.channels};
    const auto run = [&](DType dtype, Device device) {
      const auto made = [&](const Shape& s, std::uint64_t seed) { return random_values(s, seed).to(dtype).to(device); };
      const TensorOptions options{.dtype = dtype, .device = device};
      const Tensor x = made(sizes, 1), weight = made(one, 2), bias = made(one, 3), g = made(sizes, 4);
      Tensor y = empty(sizes, options), running_mean = made(one, 5), running_var = made(one, 6);
      Tensor mean = empty(one, options), rstd = empty(one, options), dx = empty(sizes, options);
      Tensor dweight = empty(one, options), dbias = empty(one, options);
      Stream stream = current_stream(device);
      kernels::batch_norm(
          {y.tensor_view(), x.tensor_view(), weight.tensor_view(), bias.tensor_view(), running_mean.tensor_view(),
           running_var.tensor_view(), mean.tensor_view(), rstd.tensor_view(), f.batch, f.channels, f.spatial},
          stream);
      kernels::batch_norm_backward(
          {dx.tensor_view(), dweight.tensor_view(), dbias.tensor_view(), g.tensor_view(), x.tensor_view(),
           weight.tensor_view(), mean.tensor_view(), rstd.tensor_view(), f.batch, f.channels, f.spatial},
          stream);
      return std::vector<Tensor>{y, running_mean, running_var, mean, rstd, dx, dweight, dbias};
    };
    const auto actual = run(kFloat32, cuda(0)), expected = run(kFloat64, kCpu);
    for (std::size_t i = 0; i < actual.size(); ++i) {
      CAPTURE(i);
      const int64_t terms = i >= 6 ? f.batch * f.spatial : 1;
      CHECK(compared(actual[i], expected[i], {.ulps = 8, .scale = 4}, terms) == "");
    }
  }
}
