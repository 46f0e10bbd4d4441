#pragma once
// Attention composed of public operations, which stores the scores, and a comparison of blockwise attention with it.

#include "support/tolerance.h"

#include <levin/autograd/autograd.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

namespace levin::test {

/// Computes attention by the definition; all operations record. `kept` multiplies the weights, undefined: by 1.
inline Tensor composed_attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o,
                                 const Tensor& kept = {}) {
  constexpr double hidden = -std::numeric_limits<double>::infinity();
  Tensor s = matmul(q, k.transpose(-2, -1)) * o.scale.value_or(1.0 / std::sqrt(static_cast<double>(q.size(-1))));
  if (o.is_causal) s = masked_fill(s, triu(ones({q.size(-2), k.size(-2)}, {.dtype = kBool}), 1), hidden);
  if (o.attn_mask.defined())
    s = o.attn_mask.dtype() == kBool ? masked_fill(s, logical_not(o.attn_mask), hidden) : s + o.attn_mask;
  const Tensor blind = all(s.detach() == hidden, {-1}, true);
  Tensor p = masked_fill(softmax(masked_fill(s, blind, 0), -1), blind, 0);
  if (kept.defined()) p = p * kept;
  return matmul(p, v);
}

/// Returns y = attention(q, k, v, options) and the gradients of q, k, v and, if it is floating, of the mask.
template <class F>
std::vector<Tensor> attention_result(F&& attention, const Tensor& q, const Tensor& k, const Tensor& v,
                                     AttentionOptions o, const Tensor& g) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : {q, k, v}) leaves.push_back(x.detach().requires_grad_());
  if (o.attn_mask.defined() && o.attn_mask.is_floating()) {
    leaves.push_back(o.attn_mask.detach().requires_grad_());
    o.attn_mask = leaves.back();
  }
  const Tensor y = attention(leaves[0], leaves[1], leaves[2], o);
  std::vector<Tensor> all{y.detach()};
  for (const Tensor& x : grad(std::vector<Tensor>{y}, leaves, {}, std::vector<Tensor>{g})) all.push_back(x);
  return all;
}

/// Returns the factors of dropout that attention draws after manual_seed(seed): of values that are the identity the
/// result is the weights. No weight may be hidden.
inline Tensor dropout_factors(const Shape& lead, int64_t rows, int64_t columns, double p, DType dtype,
                              std::uint64_t seed) {
  const auto sizes = [&](int64_t r, int64_t c) {
    Shape s = lead;
    s.push_back(r);
    s.push_back(c);
    return s;
  };
  manual_seed(seed);
  const Tensor q = zeros(sizes(rows, 1), {.dtype = dtype}), k = zeros(sizes(columns, 1), {.dtype = dtype});
  const Tensor weights = scaled_dot_product_attention(q, k, eye(columns, {.dtype = dtype}), {.dropout_p = p});
  return to(weights != 0, dtype) / (1 - p);
}

/// Compares attention with the composed form: values and gradients. With dropout, `seed` decides what is dropped.
inline void check_attention(const std::string& label, const Tensor& q, const Tensor& k, const Tensor& v,
                            const AttentionOptions& o, std::uint64_t seed = 7) {
  const Shape lead(q.sizes().begin(), q.sizes().end() - 2);
  Tensor kept;
  if (o.dropout_p > 0) kept = dropout_factors(lead, q.size(-2), k.size(-2), o.dropout_p, q.dtype(), seed);
  Shape sizes = q.sizes();
  sizes[q.dim() - 1] = v.size(-1);
  manual_seed(seed + 1);
  const Tensor g = randn(sizes, {.dtype = q.dtype()});
  const auto composed = [&](const Tensor& a, const Tensor& b, const Tensor& c, const AttentionOptions& with) {
    return composed_attention(a, b, c, with, kept);
  };
  const std::vector<Tensor> expected = attention_result(composed, q, k, v, o, g);
  manual_seed(seed);
  const std::vector<Tensor> actual = attention_result(scaled_dot_product_attention, q, k, v, o, g);
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const int64_t terms = i < 4 ? k.size(-2) + q.size(-1) : q.numel() / q.size(-1);  // a mask's gradient sums rows
    const std::string wrong = compare(actual[i], expected[i], Tolerance{.ulps = 16, .scale = 4}, terms);
    CHECK_MESSAGE(wrong.empty(), label, ", ", i, ": ", wrong);
  }
}

}  // namespace levin::test
