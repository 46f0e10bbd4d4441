// The sentences of argument checks that no case and no other test asks for.
#include "support/sentences.h"

#include <levin/autograd/autograd.h>
#include <levin/autograd/distributions.h>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace levin;
using levin::test::check_sentences;

TEST_CASE("argument checks of compositions name the values") {
  const Tensor x = ones({2, 3}), y = ones({4});
  const Tensor index = zeros({2}, kInt64);
  check_sentences({
      {"[conv1d] x is (2,) and weight (1, 1, 1); expected are (B, C, L) or (C, L)",
       [] {
         conv1d(ones({2}), ones({1, 1, 1}));
       }},
      {"[conv3d] x is (2,) and weight (1, 1, 1, 1, 1); expected are (B, C, D, H, W) or (C, D, H, W)",
       [] {
         conv3d(ones({2}), ones({1, 1, 1, 1, 1}));
       }},
      {"axis 'i' has the sizes 2 and 4",
       [&] {
         einsum("ij,i->j", {x, y});
       }},
      {"[einsum] \"ij->k\": the result has 'k'", [&] { einsum("ij->k", {x}); }},
      {"[bitwise_right_shift] float32 has no bits to shift; convert it with x.to(kInt64)",
       [&] { bitwise_right_shift(x, x); }},
      {"[alpha_dropout] p is 1.5. Give a probability between 0 and 1", [&] { alpha_dropout(x, 1.5); }},
      {"[feature_alpha_dropout] p is -1. Give a probability between 0 and 1", [&] { feature_alpha_dropout(x, -1); }},
      {"[feature_alpha_dropout] the input is (4,), expected is (B, C, ...)", [&] { feature_alpha_dropout(y); }},
      {"[dropout1d] the input is (4,), expected are 1 axes behind (B, C) or (C)", [&] { dropout1d(y); }},
      {"[roi_align] sampling_ratio is 0. Give 1 or more",
       [] {
         roi_align(ones({1, 1, 2, 2}), zeros({1, 5}), 1, {.sampling_ratio = 0});
       }},
      {"[sigmoid_focal_loss] logits is (2, 3), and target is (4,); they must have the same sizes",
       [&] { sigmoid_focal_loss(x, y); }},
      {"[ctc_loss] target length 3 of sample 0 is outside of targets (1, 2)",
       [] {
         ctc_loss(zeros({4, 1, 3}), ones({1, 2}, kInt64), {4}, {3});
       }},
      {"[ctc_loss] log_probabilities is (4,), expected is (T, B, C) or (T, C)",
       [&] {
         ctc_loss(y, ones({1, 2}, kInt64), {4}, {2});
       }},
      {"[group_norm] bias is (3,), but 4 channels need (4,)",
       [] {
         group_norm(ones({2, 4, 2}), 2, ones({4}), ones({3}));
       }},
      {"[dot] the vectors have 4 and 3 elements", [&] { vdot(y, ones({3})); }},
      {"[mv] a is (4,), expected is (M, K)", [&] { mv(y, y); }},
      {"[tensordot] 3 axes cannot be summed of (2, 3) and (4,)", [&] { tensordot(x, y, 3); }},
      {"[tensordot] 1 axes of a and 2 of b; give pairs",
       [&] {
         tensordot(x, x, {0}, {0, 1});
       }},
      {"[block_diag] needs matrices, one is (1, 2, 3)", [&] { block_diag({x.unsqueeze(0)}); }},
      {"[combinations] r is -1. Give 0 or more", [&] { combinations(y, -1); }},
      {"[repeat] count -2 of axis 1 is negative",
       [&] {
         repeat(x, {1, -2});
       }},
      {"[repeat_interleave] the count -1 is negative", [&] { repeat_interleave(y, -1); }},
      {"[repeat_interleave] the count -3 is negative",
       [] {
         repeat_interleave(ones({2}), tensor<int64_t>({1, -3}), 0);
       }},
      {"[roll] 2 shifts without axes; give one shift, or an axis for each",
       [&] {
         roll(x, {1, 2});
       }},
      {"[dsplit] x is (2, 3), more axes are needed", [&] { dsplit(x, 1); }},
      {"[hsplit] axis 1 of (2, 3) does not divide into 2 sections", [&] { hsplit(x, 2); }},
      {"[diagonal] axes 0 and -2 are the same", [&] { diagonal(x, 0, 0, -2); }},
      {"[diag_embed] x has no axis to put on a diagonal", [] { diag_embed(ones({})); }},
      {"[diag_embed] axes 1 and -1 are the same", [&] { diag_embed(y, 0, 1, -1); }},
      {"[select_scatter] source is (4,), but the part of x has the sizes (3,)", [&] { select_scatter(x, y, 0, 1); }},
      {"[unravel_index] a position is outside of 6 elements",
       [] {
         unravel_index(tensor<int64_t>({6}), {2, 3});
       }},
      {"[vander] needs a vector, x is (2, 3)", [&] { vander(x); }},
      {"[vander] n is -1. Give 0 or more", [&] { vander(y, -1); }},
      {"[embedding_renorm_] max_norm is 0. Give a positive number", [&] { embedding_renorm_(x, index, 0); }},
      {"[pad] pads (0, 3) of axis 1 do not fit its size 3 in reflect mode",
       [&] {
         pad(x, {0, 3}, PadMode::reflect);
       }},
      {"[pad] pads (-2, -2) of axis 1 remove more than its size 3",
       [&] {
         pad(x, {-2, -2}, PadMode::replicate);
       }},
      {"[max_unpool3d] indices is (4,), and x is (1, 1, 1, 1)",
       [&] {
         max_unpool3d(ones({1, 1, 1, 1}), y, {1, 1, 1});
       }},
      {"[adaptive_max_pool1d] an axis of size 4 cannot be pooled to 0",
       [] {
         adaptive_max_pool1d_with_indices(ones({1, 4}), 0);
       }},
  });
}

TEST_CASE("argument checks of statistics, random numbers and factorizations name the values") {
  const Tensor x = ones({2, 3}), one = ones({});
  check_sentences({
      {"[quantile] x of (0,) is empty", [] { quantile(ones({0}), 0.5); }},
      {"[nanmedian] axis 1 of (2, 0) is empty",
       [] {
         nanmedian(ones({2, 0}), 1);
       }},
      {"[cov] x is (1, 2, 3), expected is (variables, observations)", [&] { cov(x.unsqueeze(0)); }},
      {"[diff] x has no axis", [&] { diff(one); }},
      {"[diff] n is -2. Give 0 or more", [&] { diff(x, -2); }},
      {"[searchsorted] the sequence has no axis", [&] { searchsorted(one, x); }},
      {"[polygamma] n is -1. Give 0 or more", [&] { polygamma(-1, x); }},
      {"[normal] std has a negative element", [&] { normal(x, -x); }},
      {"[multinomial] 0 samples of weights (2, 3); at least one of a vector is needed", [&] { multinomial(x, 0); }},
      {"[random_] from 3 must be below to 3", [] { zeros({2}).random_(3, 3); }},
      {"[geometric_] p is 1. Give a number between 0 and 1", [] { geometric_(zeros({2}), 1); }},
      {"[exponential_] lambd is 0. Give a positive number", [] { zeros({2}).exponential_(0); }},
      {"[cholesky] needs float32 or float64, a matrix is float16; convert it with x.to(kFloat32)",
       [] {
         linalg::cholesky(ones({2, 2}, kHalf));
       }},
      {"[solve] needs square matrices, one is (2, 3)", [&] { linalg::solve(x, x); }},
      {"[svd] matrix 1 has values that are not finite", [&] { linalg::svd(stack({eye(2), eye(2) / 0.0})); }},
      {"[eigh] matrix 0 has values that are not finite", [&] { linalg::eigh(full({2, 2}, NAN)); }},
      {"[svd] needs matrices, one is ()", [&] { linalg::svd(one); }},
      {"[solve] matrix 1 is singular",
       [] {
         linalg::inv(stack({eye(2), zeros({2, 2})}));
       }},
      {"[qr] the gradient needs matrices with at least as many rows as columns",
       [] {
         linalg::qr(ones({2, 3}).requires_grad_()).q.sum().backward();
       }},
      {"[matrix_norm] ord is 3. Give 1, 2 or infinity", [&] { linalg::matrix_norm(x, 3.0); }},
      {"[matrix_norm] a is (), expected is (..., M, N)", [&] { linalg::matrix_norm(one); }},
      {"[matrix_exp] needs square matrices, a is (2, 3)", [&] { linalg::matrix_exp(x); }},
      {"[Categorical] classes have no variance", [&] { distributions::Categorical(x).variance(); }},
      {"[Categorical] the parameter is (), a last axis is needed", [&] { distributions::Categorical{one}; }},
      {"[Exponential] rate must be positive", [] { distributions::Exponential(zeros({2})); }},
      {"[jvp] v is (2,), and x is (2, 3)", [&] { jvp([](const Tensor& t) { return t * t; }, x, ones({2})); }},
      {"[saved_tensors_hooks] pack or unpack is empty; give both functions", [] { saved_tensors_hooks({}, {}); }},
  });
}

TEST_CASE("an in-place operation whose result does not fit names both") {
  check_sentences({
      {"[pow_] the result has shape (2, 3), which does not fit into the tensor of shape (3,)",
       [] {
         ones({3}).pow_(ones({2, 3}));
       }},
      {"[fmod_] a result of type float32 does not fit into a tensor of type int64",
       [] { ones({3}, kInt64).fmod_(ones({3})); }},
      {"[lerp_] a leaf that requires grad cannot be edited in place",
       [] { ones({3}).requires_grad_().lerp_(ones({3}), 0.5); }},
  });
}
