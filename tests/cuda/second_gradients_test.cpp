// Second gradients in 16-bit floats, which cuda's kernels compute directly, compared with float64 on the CPU.

#include "support/tolerance.h"

#include <levin/autograd/engine.h>
#include <levin/autograd/ops.h>
#include <levin/core/generator.h>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>

using namespace levin;
using namespace levin::test;

namespace {

using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;

/// Returns the gradients of sum(v * d sum(w * f) / d inputs) by the inputs, where w and v are fixed random numbers.
Tensors second(const Function& f, const Tensors& values, DType dtype, DType rounded_as, Device device) {
  Tensors inputs;
  for (const Tensor& x : values) inputs.push_back(x.to(rounded_as).to(dtype).to(device).requires_grad_());
  Generator g(3);
  const auto weights = [&](const Tensor& like) {
    std::vector<double> w(static_cast<std::size_t>(like.numel()));
    for (double& x : w) x = 2 * g.uniform() - 1;
    return from_data(w, like.sizes(), {.dtype = kFloat64}).to(rounded_as).to(dtype).to(device);
  };
  const Tensor y = f(inputs);
  const Tensor w = weights(y).requires_grad_();
  const Tensors first = grad(Tensors{y}, inputs, {.create_graph = true}, Tensors{w});
  Tensors v;
  for (const Tensor& d : first) v.push_back(weights(d));
  inputs.push_back(w);
  return grad(first, inputs, {.allow_unused = true}, v);
}

/// The inner gradient, the results, and the parts of them that the engine adds are rounded.
void check_second(const char* name, const Function& f, const std::vector<Shape>& shapes) {
  manual_seed(51);
  Tensors values;
  for (const Shape& s : shapes) values.push_back(rand(s, {.dtype = kFloat64}) * 2 - 0.75);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensors expected = second(f, values, DType::f64, dtype, kCpu);
    const Tensors actual = second(f, values, dtype, dtype, cuda(0));
    for (std::size_t i = 0; i < actual.size(); ++i) {
      REQUIRE(actual[i].defined() == expected[i].defined());
      if (!actual[i].defined()) continue;
      CHECK(actual[i].dtype() == dtype);
      const double size = expected[i].abs().max().item<double>();
      const std::string wrong = compare(actual[i].cpu(), expected[i], {.ulps = 4, .rounded = 4 * size});
      CHECK_MESSAGE(wrong.empty(), name << " " << name_of(dtype) << " input " << i << ": " << wrong);
    }
  }
}

}  // namespace

TEST_CASE("16-bit second gradients on cuda: convolutions and pooling") {
  check_second("conv2d", [](const Tensors& x) { return conv2d(x[0], x[1], x[2], {.padding = 1}).square(); },
               {{2, 2, 5, 4}, {3, 2, 3, 3}, {3}});
  check_second("conv_transpose2d",
               [](const Tensors& x) { return conv_transpose2d(x[0], x[1], {}, {.stride = 2, .padding = 1}).square(); },
               {{1, 2, 3, 3}, {2, 2, 4, 4}});
  check_second("max_pool2d", [](const Tensors& x) { return max_pool2d(x[0].square(), 2); }, {{1, 2, 4, 4}});
  check_second("avg_pool2d", [](const Tensors& x) { return avg_pool2d(x[0].square(), 2); }, {{1, 2, 4, 4}});
}

TEST_CASE("16-bit second gradients on cuda: norms and attention") {
  check_second("batch_norm", [](const Tensors& x) { return batch_norm(x[0], {}, {}, x[1], x[2], {.training = true}); },
               {{6, 3, 4}, {3}, {3}});
  check_second("batch_norm, evaluation",
               [](const Tensors& x) {
                 const Tensor mean = zeros_like(x[1]).detach(), var = ones_like(x[1]).detach();
                 return batch_norm(x[0], mean, var, x[1], x[2]).square();
               },
               {{6, 3, 4}, {3}, {3}});
  check_second("layer_norm", [](const Tensors& x) { return layer_norm(x[0], {8}, x[1], x[2]); }, {{5, 8}, {8}, {8}});
  check_second("attention",
               [](const Tensors& x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.is_causal = true}); },
               {{2, 4, 8}, {2, 4, 8}, {2, 4, 8}});
}

TEST_CASE("16-bit second gradients on cuda: losses") {
  const auto labels = [](const Tensor& x) { return tensor<int64_t>({0, 2, 1, 4}).to(x.device()); };
  check_second("cross_entropy", [&](const Tensors& x) { return cross_entropy(x[0], labels(x[0])); }, {{4, 5}});
  check_second("cross_entropy of probabilities",
               [](const Tensors& x) { return cross_entropy(x[0], x[1], {.reduction = Reduction::sum}); },
               {{4, 5}, {4, 5}});
  check_second("bce_with_logits",
               [](const Tensors& x) { return bce_with_logits(x[0], x[1], {.reduction = Reduction::sum}); },
               {{4, 5}, {4, 5}});
}
