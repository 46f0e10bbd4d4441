// The sentences of argument checks of kernels' operations: views, positions, products, creation and images.
#include "support/sentences.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/ops/recurrent.h>

#include <doctest/doctest.h>

#include <optional>
#include <vector>

using namespace levin;
using levin::test::check_sentences;

TEST_CASE("argument checks of views name the values") {
  const Tensor x = ones({2, 3}), one = ones({});
  check_sentences({
      {"[slice] step -1 is not positive; use flip() to reverse an axis", [&] { x(Slice(nil, nil, -1)); }},
      {"[slice] a 0-dim tensor has no axis to slice", [&] { slice(one, 0, Slice()); }},
      {"[select] a 0-dim tensor cannot be indexed; use item()", [&] { select(one, 0, 0); }},
      {"[index] 3 indices for a tensor of 2 dimensions, of shape (2, 3); leave some out", [&] { x(0, 0, 0); }},
      {"[view] a tensor of shape (3, 2) and strides (1, 3) cannot be seen as (6,) without a copy; use reshape()",
       [&] { x.t().view({6}); }},
      {"[flatten] start axis 1 lies behind end axis 0", [&] { flatten(x, 1, 0); }},
      {"[permute] 1 axes given for a tensor of 2 dimensions", [&] { permute(x, {0}); }},
      {"[t] the tensor has 3 dimensions, at most 2 are transposed; use transpose(a, b)", [&] { t(x.unsqueeze(0)); }},
      {"[narrow] a 0-dim tensor has no axis to narrow", [&] { narrow(one, 0, 0, 1); }},
      {"[narrow] elements 2 to 7 lie outside axis 1 of size 3", [&] { narrow(x, 1, 2, 5); }},
      {"[expand] -1 at axis 0, which the tensor of shape (2, 3) does not have",
       [&] {
         expand(x, {-1, 2, 3});
       }},
      {"[as_strided] 1 sizes but 2 strides",
       [&] {
         as_strided(x, {2}, {1, 1});
       }},
      {"[as_strided] stride -1 of axis 0 is negative", [&] { as_strided(x, {2}, {-1}); }},
      {"[as_strided] sizes (99,), strides (1,) and offset 0 reach outside the storage of ",
       [&] { as_strided(x, {99}, {1}); }},
      {"[unfold] windows of 4 with step 1 do not fit into axis 1 of size 3", [&] { unfold(x, 1, 4, 1); }},
      {"[split] a 0-dim tensor has no axis to split", [&] { split(one, 1); }},
      {"[split] a 0-dim tensor has no axis to split", [&] { split(one, std::vector<int64_t>{1}); }},
      {"[split] 2 sizes add up to 2, axis 1 has 3",
       [&] {
         split(x, std::vector<int64_t>{1, 1}, 1);
       }},
      {"[split] size 0 is not positive", [&] { split(x, 0); }},
      {"[chunk] 0 chunks; use 1 or more", [&] { chunk(x, 0); }},
      {"[unbind] a 0-dim tensor has no axis", [&] { unbind(one); }},
      {"[cat] the list of tensors is empty; give one at least", [] { cat(std::vector<Tensor>{}); }},
      {"[cat] tensors without dimensions cannot be joined; use stack()",
       [&] {
         cat({one, one});
       }},
      {"[stack] the list of tensors is empty; give one at least", [] { stack(std::vector<Tensor>{}); }},
  });
}

TEST_CASE("argument checks of positions name the values") {
  const Tensor x = ones({2, 3}), index = zeros({2}, kInt64);
  check_sentences({
      {"[gather] index (3, 4) does not fit x (2, 3): it needs as many axes, and may be at most as large",
       [&] {
         gather(x, 0, zeros({3, 4}, kInt64));
       }},
      {"[index_select] x is (2, 3), the index (1, 2): the index needs one dimension and x at least one",
       [&] { index_select(x, 0, index.unsqueeze(0)); }},
      {"[index_add] source is (3, 3); 2 indices along axis 0 of (2, 3) need (2, 3)",
       [&] {
         index_add(x, 0, index, ones({3, 3}));
       }},
      {"[index_fill] index is (1, 2), expected is a vector", [&] { index_fill(x, 0, index.unsqueeze(0), 1); }},
      {"[embedding] weight is (2,); it needs two dimensions (rows, columns)", [&] { embedding(ones({2}), index); }},
      {"[embedding] padding_idx 5 is out of range for 2 rows", [&] { embedding(x, index, 5); }},
      {"[one_hot] -3 classes make no sense; give 1 or more, or -1 for the largest index plus one",
       [&] { one_hot(index, -3); }},
      {"[one_hot] the index is empty, so the number of classes has to be given", [] { one_hot(zeros({0}, kInt64)); }},
      {"[masked_fill_] the mask is float32, not bool; compare it first, e.g. m != 0", [&] { x.masked_fill_(x, 1); }},
      {"[clamp_] neither min nor max is given; name one of them", [&] { x.clamp_(std::nullopt); }},
  });
}

TEST_CASE("argument checks of creation and products name the values") {
  const Tensor x = ones({2, 3}), truth = ones({2, 2}, kBool);
  check_sentences({
      {"[rand] int64 numbers are not floating; use randint or .dtype = kFloat32", [] { rand({2}, kInt64); }},
      {"[randn] int64 numbers are not floating; use randint", [] { randn({2}, kInt64); }},
      {"[uniform_] int64 numbers are not floating; use randint", [] { zeros({2}, kInt64).uniform_(); }},
      {"[randperm] -1 elements are fewer than none; use 0 or more", [] { randperm(-1); }},
      {"[uniform_] the range [1, 0) is empty; low must not exceed high", [&] { x.uniform_(1, 0); }},
      {"[normal_] a standard deviation of -1 is impossible; use 0 or more", [&] { x.normal_(0, -1); }},
      {"[pow] integers to the negative power -1 are not integers; use x.to(kFloat32)",
       [] { pow(ones({2}, kInt64), -1); }},
      {"[matmul] bool matrices have no product; convert them with x.to(kInt32)", [&] { matmul(truth, truth); }},
      {"[solve] A is (2, 2) and B (3, 1), which do not fit",
       [] {
         linalg::solve(eye(2), ones({3, 1}));
       }},
      {"[cross_entropy] logits is (), but (batch, classes, ...) or (classes,) is needed",
       [] { cross_entropy(ones({}), zeros({}, kInt64)); }},
  });
}

TEST_CASE("argument checks of images, norms, attention and recurrent steps name the values") {
  const Tensor x = ones({2, 3}), y = ones({4}), weight = ones({1, 1, 1, 1});
  check_sentences({
      {"[conv2d] x needs three or four dimensions, and weight four: x is (4,), weight is (1, 1, 1, 1)",
       [&] { conv2d(y, weight); }},
      {"[conv2d] x is int64; a floating type is needed",
       [&] {
         conv2d(ones({1, 1, 2, 2}, kInt64), weight.to(kInt64));
       }},
      {"[max_pool2d] x is int64; a floating type is needed",
       [] {
         max_pool2d(ones({1, 2, 2}, kInt64), 2);
       }},
      {"[max_pool2d] x is (4,); it needs the dimensions (C, H, W) or (B, C, H, W)", [&] { max_pool2d(y, 2); }},
      {"[grid_sample] x is (2, 3), expected is (B, C, H, W)", [&] { grid_sample(x, x); }},
      {"[batch_norm] weight is float64, x is float32. Convert one with x.to(dtype)",
       [&] { batch_norm(x, {}, {}, ones({3}, kFloat64), {}, {.training = true}); }},
      {"[scaled_dot_product_attention] q is (4,), k (4,), v (4,): each needs two dimensions at least",
       [&] { scaled_dot_product_attention(y, y, y); }},
      {"[recurrent_steps] h is (1, 2), but from_input of (1, 1, 4) needs (1, 1)",
       [] {
         recurrent_steps(RecurrentCell::lstm, ones({1, 1, 4}), {ones({1, 2}), {}, {}, {}});
       }},
  });
}
