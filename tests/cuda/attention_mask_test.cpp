// Attention with masks and dropout on cuda compared with the CPU's, which drops the same weights.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/core/generator.h>

#include <doctest/doctest.h>

#include <limits>

using namespace levin;
using namespace levin::test;

namespace {

struct Heads {
  Tensor q, k, v, g, mask;
};

/// Returns y and the gradients of q, k, v and a floating mask.
std::vector<Tensor> run(const Heads& h, Device device, AttentionOptions o) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : {h.q, h.k, h.v}) leaves.push_back(x.to(device).requires_grad_());
  if (h.mask.defined()) {
    o.attn_mask = h.mask.to(device);
    if (h.mask.is_floating()) leaves.push_back(o.attn_mask.requires_grad_());
  }
  manual_seed(61);
  const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], o);
  std::vector<Tensor> all{y.detach().to(kCpu)};
  for (const Tensor& x : grad(std::vector<Tensor>{y}, leaves, {}, std::vector<Tensor>{h.g.to(device)}))
    all.push_back(x.to(kCpu));
  return all;
}

void check_devices(const std::string& label, const Heads& h, const AttentionOptions& o) {
  const auto expected = run(h, kCpu, o), actual = run(h, cuda(0), o);
  REQUIRE(actual.size() == expected.size());
  const DType dtype = h.q.dtype();
  const double narrow = size_of(dtype) == 2 ? 24 : 0;  // as the operation case: gradients sum to 12, times up to 2
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const std::string wrong =
        compare(actual[i], expected[i], Tolerance{.ulps = 16, .scale = 4, .rounded = narrow}, h.k.size(-2) + 8);
    CHECK_MESSAGE(wrong.empty(), label, ", ", name_of(dtype), ", ", i, ": ", wrong);
  }
}

}  // namespace

TEST_CASE("attention with masks and dropout on cuda matches the CPU") {
  manual_seed(60);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
    for (const int64_t columns : {7, 68}) {
      const auto numbers = [&](const Shape& sizes) { return rand(sizes).to(dtype); };
      Heads h{
          numbers({2, 2, 5, 4}), numbers({2, 2, columns, 4}), numbers({2, 2, columns, 3}), numbers({2, 2, 5, 3}), {}};
      check_devices("dropout", h, {.dropout_p = 0.4});
      check_devices("causal dropout", h, {.dropout_p = 0.4, .is_causal = true});
      h.mask = rand({2, 1, 1, columns}) > 0.3;
      h.mask.select(0, 1).fill_(false);  // hides everything
      check_devices("padding", h, {});
      check_devices("padding and dropout", h, {.dropout_p = 0.4});
      const Tensor hidden = rand({2, 5, columns}) > 0.6;
      hidden.select(1, 2).fill_(true);
      h.mask = masked_fill(rand({2, 5, columns}), hidden, -std::numeric_limits<double>::infinity()).to(dtype);
      check_devices("floating", h, {});
      check_devices("floating and dropout", h, {.dropout_p = 0.4});
    }
}
