// Aspects that the operation cases do not vary: the layout of incoming gradients, and eps in second derivatives.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/gradcheck.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace levin;
using levin::test::compare;

namespace {

struct Differentiable {
  const char* name;
  Tensor x;
  std::function<Tensor(const Tensor&)> f;
};

/// Returns the values of g with the memory order of its axes reversed.
Tensor turned(const Tensor& g) {
  Shape reversed;
  for (int d = g.dim() - 1; d >= 0; --d) reversed.push_back(d);
  return g.permute(reversed).contiguous().permute(reversed);
}

/// Repeats the first slice, with strides of 0.
Tensor repeated(const Tensor& g) { return g.narrow(0, 0, 1).expand(g.sizes()); }

/// Returns g as every second element of a wider tensor whose other elements are NaN.
Tensor sparse(const Tensor& g) {
  Shape wide = g.sizes();
  wide.push_back(2);
  const Tensor memory = full(wide, std::nan(""), {.dtype = g.dtype()});
  const Tensor part = memory.select(g.dim(), 0);
  part.copy_(g);
  return part;
}

std::vector<Differentiable> operations() {
  manual_seed(41);
  const Tensor rows = randn({6, 5}), images = randn({3, 4, 6, 5}), heads = randn({2, 3, 6, 4});
  const Tensor labels = randint(0, 5, {6}), index = randint(0, 6, {6, 5}), target = rand({6, 5});
  const Tensor weight = randn({4, 4, 3, 3}), matrix = randn({5, 7}), scale = randn({5}), channels = randn({4});
  return {
      {"softmax", rows, [](const Tensor& x) { return softmax(x, 1); }},
      {"softmax of columns", images, [](const Tensor& x) { return softmax(x, 1); }},
      {"log_softmax", rows, [](const Tensor& x) { return log_softmax(x, 1); }},
      {"log_softmax of columns", images, [](const Tensor& x) { return log_softmax(x, 1); }},
      {"attention", heads,
       [=](const Tensor& x) { return scaled_dot_product_attention(x, x, x * 0.5, {.is_causal = true}); }},
      {"cross_entropy", rows,
       [=](const Tensor& x) { return cross_entropy(x, labels, {.reduction = Reduction::none}); }},
      {"cross_entropy of pixels", images,
       [=](const Tensor& x) {
         return cross_entropy(x, zeros({3, 6, 5}, {.dtype = kInt64}), {.reduction = Reduction::none});
       }},
      {"bce_with_logits", rows,
       [=](const Tensor& x) { return bce_with_logits(x, target, {.reduction = Reduction::none}); }},
      {"mse_loss", rows, [=](const Tensor& x) { return mse_loss(x, target, Reduction::none); }},
      {"layer_norm", rows, [=](const Tensor& x) { return layer_norm(x, {5}, scale, scale); }},
      {"batch_norm", images,
       [=](const Tensor& x) { return batch_norm(x, {}, {}, channels, channels, {.training = true}); }},
      {"conv2d", images, [=](const Tensor& x) { return conv2d(x, weight, {}, {.padding = 1}); }},
      {"conv_transpose2d", images, [=](const Tensor& x) { return conv_transpose2d(x, weight, {}, {.stride = 2}); }},
      {"max_pool2d", images, [](const Tensor& x) { return max_pool2d(x, 2, {.stride = 1}); }},
      {"avg_pool2d", images, [](const Tensor& x) { return avg_pool2d(x, 2, {.stride = 1}); }},
      {"matmul", rows, [=](const Tensor& x) { return matmul(x, matrix); }},
      {"linear", rows, [=](const Tensor& x) { return linear(x, matrix.t(), randn({7}) * 0.0); }},
      {"gather", rows, [=](const Tensor& x) { return gather(x, 0, index); }},
      {"index_select", rows, [=](const Tensor& x) { return index_select(x, 0, labels); }},
      {"embedding", rows, [=](const Tensor& x) { return embedding(x, labels); }},
      {"cumsum", rows, [](const Tensor& x) { return cumsum(x, 1); }},
      {"cat", rows, [](const Tensor& x) { return cat({x, x * 2.0}, 1); }},
      {"gelu", rows, [](const Tensor& x) { return gelu(x); }},
      {"amax", images, [](const Tensor& x) { return amax(x, {1}); }},
  };
}

}  // namespace

TEST_CASE("gradients do not depend on the strides of the incoming gradient") {
  for (const Differentiable& d : operations()) {
    const Tensor x = d.x.detach().requires_grad_();
    const Tensor y = d.f(x);
    const Tensor random_g = randn(y.sizes());
    for (const auto& [layout, g] : {std::pair("turned", turned(random_g)), std::pair("repeated", repeated(random_g)),
                                    std::pair("sparse", sparse(random_g))}) {
      REQUIRE((y.dim() == 1 || !g.is_contiguous()));  // a vector has no axes to reverse
      const Tensor strided = grad({y}, {x}, {.retain_graph = true}, {g})[0];
      const Tensor dense = grad({y}, {x}, {.retain_graph = true}, {g.contiguous()})[0];
      const std::string wrong = compare(strided, dense, {.ulps = 4, .scale = 1}, 64);
      CHECK_MESSAGE(wrong.empty(), d.name, ", ", layout, ": ", wrong);
    }
  }
}

TEST_CASE("second derivatives of norms depend on eps") {
  manual_seed(42);
  const auto leaf = [](const Shape& sizes) { return randn(sizes, {.dtype = kDouble}).requires_grad_(); };
  for (const double eps : {1e-5, 0.3, 2.0}) {
    const std::string of_layer = gradgradcheck(
        [eps](const std::vector<Tensor>& t) -> std::vector<Tensor> { return {layer_norm(t[0], {3}, t[1], t[2], eps)}; },
        {leaf({4, 3}), leaf({3}), leaf({3})});
    CHECK_MESSAGE(of_layer.empty(), "layer_norm, eps ", eps, ": ", of_layer);
    const std::string of_batch = gradgradcheck(
        [eps](const std::vector<Tensor>& t) -> std::vector<Tensor> {
          return {batch_norm(t[0], {}, {}, t[1], t[2], {.training = true, .eps = eps})};
        },
        {leaf({4, 3}), leaf({3}), leaf({3})});
    CHECK_MESSAGE(of_batch.empty(), "batch_norm, eps ", eps, ": ", of_batch);
  }
}

TEST_CASE("nll_loss of ignored samples alone has zero gradients, those of the class weights too") {
  const Tensor x = log_softmax(randn({3, 4}), 1).detach().requires_grad_();
  const Tensor weight = ones({4}).requires_grad_();
  const Tensor target = full({3}, -100, {.dtype = kInt64});
  const auto grads = grad({nll_loss(x, target, {.weight = weight})}, {x, weight});
  CHECK(all(eq(grads[0], 0)).item<bool>());
  CHECK(all(eq(grads[1], 0)).item<bool>());
}

TEST_CASE("the soft margin loss of a far wrong sign does not overflow") {
  CHECK(soft_margin_loss(tensor<float>({-200, 300}), tensor<float>({1, -1}), Reduction::none).to_vector<float>() ==
        std::vector<float>{200, 300});
}
