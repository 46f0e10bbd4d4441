// Fused losses and normalisations across tasks, against their compositions of other operations.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/parallel.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace levin;

namespace {

/// Compares the values of f with those of `composed`, and its gradients with those that are recorded; both have the
/// same bits with 1 and 3 threads.
void check_fused(const std::vector<Tensor>& inputs, const std::function<Tensor(const std::vector<Tensor>&)>& f,
                 const std::function<Tensor(const std::vector<Tensor>&)>& composed) {
  std::vector<Tensor> leaves;
  for (const Tensor& t : inputs) leaves.push_back(clone(t).requires_grad_());
  const Tensor y = f(leaves), expected = composed(inputs);
  const test::Tolerance tolerance{.ulps = 64, .scale = 16};
  CHECK(test::compare(detach(y), expected, tolerance).empty());
  const std::vector<Tensor> seeds{randn(y.sizes(), like(expected))};
  const auto gradients = [&](bool recorded) {
    const std::vector<Tensor> outputs{f(leaves)};
    return grad(outputs, leaves, {.create_graph = recorded}, seeds);
  };
  const int threads = num_threads();
  set_num_threads(1);
  const auto fused = gradients(false), reference = gradients(true);
  const Tensor alone = detach(f(leaves));
  set_num_threads(3);
  const auto again = gradients(false);
  CHECK(detach(f(leaves)).to_vector<double>() == alone.to_vector<double>());
  set_num_threads(threads);
  for (std::size_t i = 0; i < fused.size(); ++i) {
    CAPTURE(i);
    const std::string wrong = test::compare(fused[i], detach(reference[i]), {.ulps = 1024, .scale = 1024});
    CHECK_MESSAGE(wrong.empty(), wrong);
    CHECK(fused[i].to_vector<double>() == again[i].to_vector<double>());
  }
}

}  // namespace

TEST_CASE("group, instance and RMS norm: values and gradients of many groups, off the origin") {
  manual_seed(3);
  const TensorOptions wide{.dtype = kFloat64};
  const int64_t channels = 150;  // of which one group has more than Channels::kMost, too
  const Tensor x = add(randn({5, channels, 13, 11}, wide), 3.0), w = randn({channels}, wide);
  const Tensor b = randn({channels}, wide);
  const auto spread = [&](const Tensor& t) { return reshape(t, {channels, 1, 1}); };
  for (const int64_t groups : {int64_t{1}, int64_t{3}, channels}) {
    const auto composed = [&](const std::vector<Tensor>& in) {
      const Tensor parts = reshape(in[0], {5, groups, -1});
      const Tensor centred = sub(parts, mean(parts, {2}, true));
      const Tensor xh = mul(centred, rsqrt(add(mean(square(centred), {2}, true), 0.01)));
      return add(mul(reshape(xh, in[0].sizes()), spread(in[1])), spread(in[2]));
    };
    check_fused({x, w, b}, [&](auto& in) { return group_norm(in[0], groups, in[1], in[2], 0.01); }, composed);
    if (groups < channels) continue;
    check_fused({x, w, b}, [](auto& in) { return instance_norm(in[0], in[1], in[2], 0.01); }, composed);
  }
  const Tensor rows = randn({700, 67}, wide), scale = randn({67}, wide);
  check_fused({rows, scale}, [](auto& in) { return rms_norm(in[0], {67}, in[1], 0.1); }, [](auto& in) {
    return mul(mul(in[0], rsqrt(add(mean(square(in[0]), {1}, true), 0.1))), in[1]);
  });
}

TEST_CASE("mse, huber and glu: values and gradients across tasks") {
  manual_seed(4);
  const TensorOptions wide{.dtype = kFloat64};
  const Tensor x = randn({40'009}, wide), t = randn({40'009}, wide);
  check_fused({x, t}, [](auto& in) { return mse_loss(in[0], in[1]); },
              [](auto& in) { return mean(square(sub(in[0], in[1]))); });
  const auto huber = [](const Tensor& a, const Tensor& b, double limit) {
    const Tensor d = abs(sub(a, b));
    return where(le(d, limit), mul(square(d), 0.5), mul(sub(d, limit / 2), limit));
  };
  check_fused({x, t}, [](auto& in) { return huber_loss(in[0], in[1], Reduction::sum, 0.3); },
              [&](auto& in) { return sum(huber(in[0], in[1], 0.3)); });
  check_fused({x, t}, [](auto& in) { return smooth_l1_loss(in[0], in[1], Reduction::mean, 0.25); },
              [&](auto& in) { return div(mean(huber(in[0], in[1], 0.25)), 0.25); });
  check_fused({reshape(narrow(x, 0, 0, 40'000), {100, 2, 200})}, [](auto& in) { return glu(in[0], 1); }, [](auto& in) {
    return mul(narrow(in[0], 1, 0, 1), sigmoid(narrow(in[0], 1, 1, 1)));
  });
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(mse_loss(tensor<float>({1, -INFINITY}), tensor<float>({0, 0})).item<double>() == infinity);
  CHECK(std::isnan(huber_loss(tensor<float>({1, NAN}), tensor<float>({0, 0})).item<double>()));
  CHECK(std::isnan(mse_loss(ones({0}), ones({0})).item<double>()));
}
