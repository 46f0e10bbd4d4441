// Blockwise attention compared with the composed form: on views, with both partitions of backward, on any number of
// threads.

#include "kernels/attention_oracle.h"
#include "support/comparison.h"

#include <levin/core/parallel.h>

#include <fmt/format.h>

using namespace levin;
using levin::test::approx;
using levin::test::check_attention;
using levin::test::compare;
using levin::test::Tolerance;

namespace {

struct Result {
  Tensor y, dq, dk, dv;
  std::vector<Tensor> all() const { return {y, dq, dk, dv}; }
};

Result run(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o, const Tensor& g) {
  const Tensor ql = q.detach().requires_grad_(), kl = k.detach().requires_grad_(), vl = v.detach().requires_grad_();
  const Tensor y = scaled_dot_product_attention(ql, kl, vl, o);
  const auto grads = grad({y}, {ql, kl, vl}, {}, {g});
  return {y.detach(), grads[0], grads[1], grads[2]};
}

void check_against_composed(int64_t batch, int64_t rows, int64_t columns, int64_t width, int64_t values, DType dtype) {
  const Tensor q = randn({batch, rows, width}, {.dtype = dtype}), k = randn({batch, columns, width}, {.dtype = dtype});
  const Tensor v = randn({batch, columns, values}, {.dtype = dtype});
  for (const bool causal : {false, true})
    check_attention(fmt::format("{} x {} x {} x {}{}", batch, rows, columns, width, causal ? " causal" : ""), q, k, v,
                    {.is_causal = causal});
}

}  // namespace

TEST_CASE("blockwise attention matches the composed form, forward and backward") {
  manual_seed(31);
  for (const DType dtype : {kDouble, kFloat}) {
    check_against_composed(1, 1, 1, 1, 1, dtype);
    check_against_composed(2, 31, 33, 7, 5, dtype);
    check_against_composed(17, 65, 100, 16, 16, dtype);  // many problems: one per task
    check_against_composed(2, 130, 521, 33, 31, dtype);  // few: two sweeps over several blocks of rows and columns
    check_against_composed(1, 340, 40, 8, 8, dtype);
    check_against_composed(1, 40, 340, 8, 8, dtype);
    check_against_composed(17, 100, 340, 8, 8, dtype);  // many problems of several blocks of columns
    check_against_composed(17, 340, 330, 5, 9, dtype);
    check_against_composed(2, 340, 600, 9, 5, dtype);
  }
}

TEST_CASE("attention reads views of one projection in place, and its results are such views again") {
  manual_seed(32);
  for (const int64_t batch : {3, 9})  // 6 problems: two sweeps; 18: one per task
    for (const bool causal : {false, true}) {
      const Tensor qkv = randn({batch, 137, 3, 2, 16}), heads = qkv.permute({2, 0, 3, 1, 4});  // (3, B, H, T, E)
      const Tensor g = randn({batch, 137, 2, 16}).transpose(1, 2);
      const auto part = [&](int64_t i) { return heads.select(0, i); };
      const Result views = run(part(0), part(1), part(2), {.is_causal = causal}, g);
      const Result copies = run(part(0).contiguous(), part(1).contiguous(), part(2).contiguous(),
                                {.is_causal = causal}, g.contiguous());
      CHECK(views.y.transpose(1, 2).is_contiguous());  // (B, T, H, E) in memory
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(views.all()[i].to_vector<float>() == copies.all()[i].to_vector<float>());
        if (i > 0) CHECK(views.all()[i].strides() == part(0).strides());  // one gradient of the projection
        CHECK(copies.all()[i].is_contiguous());
      }
    }
  // Sequences before batches: (T, B, H, E) in memory.
  const Tensor first = randn({5, 2, 3, 8}).permute({1, 2, 0, 3});
  CHECK(run(first, first, first, {}, first).y.permute({2, 0, 1, 3}).is_contiguous());
  // Expanded heads say nothing about an order.
  const Tensor shared = randn({2, 1, 5, 8}).expand({2, 3, 5, 8});
  const Result spread = run(shared, shared, shared, {}, randn({2, 3, 5, 8}));
  for (const Tensor& x : spread.all()) CHECK(x.is_contiguous());
  // Heads of size 1 have any stride along their axis; the values are wider.
  const Tensor narrow = as_strided(randn({3}), {2, 1}, {1, 2}), wide = randn({2, 3});
  CHECK(run(narrow, narrow, wide, {}, wide).y.to_vector<float>() ==
        run(narrow.clone(), narrow.clone(), wide, {}, wide).y.to_vector<float>());
  // A last axis with a stride is copied first.
  const Tensor q = randn({16, 37}).t(), k = randn({37, 16}), v = randn({37, 16});
  CHECK(scaled_dot_product_attention(q, k, v).to_vector<float>() ==
        scaled_dot_product_attention(q.contiguous(), k, v).to_vector<float>());
}

TEST_CASE("attention has the same bits on any number of threads") {
  manual_seed(33);
  const int before = num_threads();
  for (const int64_t batch : {2, 19}) {
    const Tensor q = randn({batch, 150, 16}), k = randn({batch, 340, 16}), v = randn({batch, 340, 16}),
                 g = randn({batch, 150, 16});
    set_num_threads(1);
    const Result expected = run(q, k, v, {}, g);
    for (const int threads : {2, 3, 7}) {
      set_num_threads(threads);
      const Result again = run(q, k, v, {}, g);
      for (std::size_t i = 0; i < 4; ++i)
        CHECK(again.all()[i].to_vector<float>() == expected.all()[i].to_vector<float>());
    }
  }
  set_num_threads(before);
}

TEST_CASE("attention stays finite with large scores") {
  const Tensor q = full({4, 8}, 100.0), y = scaled_dot_product_attention(q, q, ones({4, 8}), {.is_causal = true});
  for (const float x : y.to_vector<float>()) CHECK(x == approx(1.0f, {.relative = 1e-6}));
}

TEST_CASE("a fully masked row gives zeros and zero gradients") {
  manual_seed(34);
  const Tensor q = randn({2, 4}), k = randn({3, 4}), v = randn({3, 4}), g = ones({2, 4});
  const Tensor choice = from_data<bool>({true, false, true, false, false, false}, {2, 3});
  const double hidden = -std::numeric_limits<double>::infinity();
  const Tensor added = masked_fill(zeros({2, 3}), logical_not(choice), hidden);
  const Result by_choice = run(q, k, v, {.attn_mask = choice}, g), by_sum = run(q, k, v, {.attn_mask = added}, g);
  for (const Result& r : {by_choice, by_sum})
    for (const Tensor& t : {r.y, r.dq})
      CHECK(t.select(0, 1).to_vector<float>() == std::vector<float>(4, 0.0f));
  for (std::size_t i = 0; i < 4; ++i) {
    const std::string wrong = compare(by_choice.all()[i], by_sum.all()[i], Tolerance{.ulps = 4, .scale = 1}, 4);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("attention's dropout keeps the mean and follows the generator") {
  manual_seed(35);
  const Tensor q = zeros({64, 8}), v = ones({64, 8});
  manual_seed(36);
  const Tensor a = scaled_dot_product_attention(q, q, v, {.dropout_p = 0.5});
  manual_seed(36);
  const Tensor b = scaled_dot_product_attention(q, q, v, {.dropout_p = 0.5});
  CHECK(a.to_vector<float>() == b.to_vector<float>());
  // The mean of 64 x 64 Bernoulli samples has a standard deviation of 1 / 64.
  CHECK(std::abs(a.mean().item<double>() - 1.0) < 5.0 / 64.0);
  CHECK(a.to_vector<float>() != scaled_dot_product_attention(q, q, v).to_vector<float>());
}

TEST_CASE("grouped queries have the bits of repeated heads, also with a mask and dropout") {
  manual_seed(38);
  const Tensor q = randn({2, 6, 5, 8}), k = randn({2, 2, 7, 8}), v = randn({2, 2, 7, 3});
  const auto repeated = [](const Tensor& x) { return index_select(x, 1, tensor<int64_t>({0, 0, 0, 1, 1, 1})); };
  for (AttentionOptions o : std::vector<AttentionOptions>{
           {}, {.is_causal = true}, {.attn_mask = randn({6, 5, 7})}, {.dropout_p = 0.5}}) {
    manual_seed(39);
    const Tensor expected = scaled_dot_product_attention(q, repeated(k), repeated(v), o);
    o.enable_gqa = true;
    manual_seed(39);
    const Tensor y = scaled_dot_product_attention(q, k, v, o);
    CHECK(y.sizes() == Shape{2, 6, 5, 3});
    CHECK(y.to_vector<float>() == expected.to_vector<float>());
  }
}

TEST_CASE("blockwise attention has correct gradients for a given scale") {
  manual_seed(37);
  for (const int64_t batch : {2, 17}) {
    const Tensor q = randn({batch, 100, 8}, {.dtype = kDouble}), k = randn({batch, 340, 8}, {.dtype = kDouble});
    const Tensor v = randn({batch, 340, 6}, {.dtype = kDouble});
    check_attention(std::to_string(batch), q, k, v, {.scale = 0.9});
  }
}

TEST_CASE("blockwise attention stays accurate if all scores are far below zero") {
  for (const int64_t columns : {1, 5, 33, 261}) {
    const Tensor q = full({3, 8}, 30.0), k = full({columns, 8}, -30.0), v = ones({columns, 4});
    for (const float x : scaled_dot_product_attention(q, k, v).to_vector<float>())
      CHECK_MESSAGE(std::abs(x - 1.0f) <= 1e-6f, columns, ": ", x);
  }
}
