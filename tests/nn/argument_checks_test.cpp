// The sentences of argument checks of modules that no other test asks for.
#include "support/sentences.h"

#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <vector>

using namespace levin;
using levin::test::check_sentences;

namespace {

/// A module whose constructor does not make what was added later.
struct Grown : nn::Module {};

}  // namespace

TEST_CASE("argument checks of modules name the values") {
  const Tensor x = ones({2, 3}), index = zeros({2}, kInt64);
  check_sentences({
      {"[Softmax2d] the input is (2, 3), expected is (B, C, H, W) or (C, H, W)", [&] { nn::Softmax2d()(x); }},
      {"[AdaptiveLogSoftmaxWithLoss] cutoffs 5, 3 must increase between 1 and 9",
       [] {
         nn::AdaptiveLogSoftmaxWithLoss(4, 10, {5, 3});
       }},
      {"[AdaptiveLogSoftmaxWithLoss] x is (2, 3) and target (2,), expected are (B, 4) and (B,)",
       [&] { nn::AdaptiveLogSoftmaxWithLoss(4, 10, {3})(x, index); }},
      {"[Lambda] the function is empty", [] { nn::Lambda(nullptr); }},
      {"[ParameterDict] there is no parameter \"b\"; there are: a",
       [&] {
         nn::ParameterDict d;
         d.append("a", x);
         d["b"];
       }},
      {"[Sequential] index 1 is outside of 1 modules", [] { nn::Sequential(nn::ReLU{})[1]; }},
      {"[Conv1d] same keeps the size for stride 1 only, and stride is",
       [] { nn::Conv1d(1, 1, 3, {.stride = 2, .same = true}); }},
      {"[eye_] the tensor is (2,), a matrix is needed", [] { nn::init::eye_(ones({2})); }},
      {"[trunc_normal_] std 0 must be positive, and a -2 below b 2", [&] { nn::init::trunc_normal_(x, 0, 0); }},
      {"[orthogonal_] the tensor is (2,), two axes or more are needed", [] { nn::init::orthogonal_(ones({2})); }},
      {"[dirac_] the tensor is (2, 3), expected is the weight (O, I, k...) of a convolution",
       [&] { nn::init::dirac_(x); }},
      {"[dirac_] 3 output channels do not divide into 2 groups",
       [] {
         nn::init::dirac_(ones({3, 1, 3}), 2);
       }},
      {"[sparse_] sparsity is 1.5. Give a share between 0 and 1", [&] { nn::init::sparse_(x, 1.5); }},
      {"[Embedding] padding_idx 5 is outside of 3 rows", [] { nn::Embedding(3, 2, {.padding_idx = 5}); }},
      {"[EmbeddingBag] padding_idx -4 is outside of 3 rows", [] { nn::EmbeddingBag(3, 2, {.padding_idx = -4}); }},
      {"[embedding_bag] the index is (2,), expected is (B, n), or a vector with offsets",
       [&] { nn::EmbeddingBag(3, 2)(index); }},
      {"[embedding_bag] per_sample_weights need mode sum and the sizes of the index",
       [&] {
         nn::EmbeddingBag(3, 2)(index.unsqueeze(0), {}, ones({1, 2}));
       }},
      {"[FeatureAlphaDropout] p is 2. Give a probability between 0 and 1", [] { nn::FeatureAlphaDropout(2); }},
      {"[FeatureDropout] p is 2. Give a probability between 0 and 1", [] { nn::Dropout2d(2); }},
      {"[AlphaDropout] p is -1. Give a probability between 0 and 1", [] { nn::AlphaDropout(-1); }},
      {"[L2Norm] the input is (2, 3), expected is (B, 4, ...)", [&] { nn::L2Norm(4)(x); }},
      {"[PositionalEncoding] the input is (2, 3), expected is (T, B, 4) with T up to 5000",
       [&] { nn::PositionalEncoding(4)(x); }},
      {"[GroupNorm] 4 channels do not divide into 3 groups", [] { nn::GroupNorm(3, 4); }},
      {"[BatchNorm1d] the input is (2, 3, 1, 1), expected is (B, 3) or (B, C, L)",
       [] {
         nn::BatchNorm1d(3)(ones({2, 3, 1, 1}));
       }},
      {"[BatchNorm2d] the input is (2, 3)", [&] { nn::BatchNorm2d(3)(x); }},
      {"[BatchNorm3d] the input is (2, 3)", [&] { nn::BatchNorm3d(3)(x); }},
      {"[Recurrent] dropout is 2. Give a probability between 0 and 1", [] { nn::LSTM(2, 3, {.dropout = 2}); }},
      {"[GRU] the state is (1, 2, 5), expected is (1, 2, 4)",
       [] {
         nn::GRU(3, 4)(ones({5, 2, 3}), ones({1, 2, 5}));
       }},
      {"[GRUCell] the state is (2, 5), expected is (2, 4)",
       [&] {
         nn::GRUCell(3, 4)(x, ones({2, 5}));
       }},
      {"[MultiheadAttention] query, key and value are (2, 1, 3)", [&] { nn::MultiheadAttention(4, 2)(x, x, x); }},
      {"[vector_to_parameters] the vector is (2, 3), but the parameters have 4 elements",
       [&] { nn::vector_to_parameters(x, std::vector<Tensor>{ones({4})}); }},
      {"[fuse_conv_bn_eval] a transposed convolution of several groups cannot be fused",
       [] { nn::fuse_conv_bn_eval(nn::ConvTranspose1d(4, 4, 3, {.groups = 2}), nn::BatchNorm1d(4)); }},
      {"[embedding_bag] the first offset is 1; the first bag must begin at 0",
       [] { nn::EmbeddingBag(4, 2)(tensor({0, 1}), tensor({1}), {}); }},
      {"[fuse_conv_bn_weights] the norm has no running statistics",
       [] { nn::fuse_conv_bn_eval(nn::Conv1d(1, 2, 3), nn::BatchNorm1d(2, {.track_running_stats = false})); }},
      {"[ReflectionPad2d] the input is (2, 3), expected are 2 spatial axes after (B, C) or (C)",
       [&] { nn::ReflectionPad2d(1)(x); }},
      {"[MaxUnpool1d] output size 9 of axis 0 is not between 5 and 7",
       [&] {
         nn::MaxUnpool1d(2)(ones({1, 3}), zeros({1, 3}, kInt64), 9);
       }},
      {"[Conv2d] 3 input and 4 output channels do not divide into 2 groups",
       [] { nn::Conv2d(3, 4, 1, {.groups = 2}); }},
      {"[Dropout] p is 2. Give a probability between 0 and 1", [] { nn::Dropout(2); }},
      {"[Recurrent] 2 lengths for a batch of 1",
       [] {
         nn::LSTM(3, 4)(ones({2, 1, 3}), {}, {1, 1});
       }},
      {"[init] fans need two dimensions or more, the tensor is (2,). Use uniform_ or normal_",
       [] { nn::init::calculate_fans(ones({2})); }},
      {"[Substitution] 1 places, but 0 tensors to stand there", [&] { nn::Substitution({x}, {}); }},
      {"[Substitution] number 0 is undefined; leave it out", [&] { nn::Substitution({x}, {Tensor()}); }},
      {"[Grown] \"a.b\" is no name: it must not be empty and must have no dots",
       [&] { Grown().register_buffer("a.b", x); }},
      {"[Linear] has no parameter \"scale\" of its own that could be derived from others",
       [] { nn::Linear(2, 2).derive_parameter("scale", {}, {}); }},
      {"[clone] building a Grown again gave another structure. Pass its constructor's arguments",
       [] {
         Grown grown;
         grown.add<nn::ReLU>("more");
         nn::clone(grown);
       }},
  });
}
