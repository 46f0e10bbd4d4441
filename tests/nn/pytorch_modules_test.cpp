// Outputs and gradients of modules against PyTorch's, stored by tests/pytorch/make_values.py: parameters have its
// names, its order and its sizes.
#include "support/stored_values.h"
#include "support/tolerance.h"

#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace levin;
using namespace levin::test;

namespace {

using Tensors = std::vector<Tensor>;

Tensor input(const Shape& sizes, int64_t salt = 1) {
  return (formula(sizes.numel(), 100 + salt).to(kFloat64).reshape(sizes) * 2).requires_grad_();
}

std::string difference(const StoredValues& stored, const std::string& name, const Tensor& actual) {
  const auto expected = stored.find(name);
  if (expected == stored.end()) return name + ": PyTorch has no such value";
  const std::string wrong = compare(actual.detach(), expected->second, {.ulps = 64, .scale = 16}, 16);
  return wrong.empty() ? "" : name + ": " + wrong;
}

/// Runs `call` with the module in double precision and parameters by formula, and compares all values.
template <class M, class F>
void check_module(const std::string& name, M&& module, const Tensors& inputs, const F& call) {
  static const StoredValues stored = read_stored_values("modules.txt");
  CAPTURE(name);
  module.to(kFloat64);
  {
    no_grad guard;
    int64_t salt = 0;
    for (const auto& [key, p] : module.named_parameters())
      p.copy_(formula(p.numel(), salt++).to(kFloat64).reshape(p.sizes()) * 0.5);
  }
  const Tensors outputs = call(module);
  Tensor loss = zeros({}, kFloat64);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CHECK(difference(stored, fmt::format("{}/out{}", name, i), outputs[i]) == "");
    const Tensor weight = formula(outputs[i].numel(), 1000 + static_cast<int64_t>(i)).to(kFloat64);
    loss = loss + (outputs[i] * weight.reshape(outputs[i].sizes())).sum();
  }
  loss.backward();
  std::size_t gradients = 0;
  for (const auto& [key, p] : module.named_parameters()) {
    CHECK(difference(stored, name + "/grad/" + key, p.grad()) == "");
    ++gradients;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    CHECK(difference(stored, fmt::format("{}/grad_input{}", name, i), inputs[i].grad()) == "");
  std::size_t expected = 0;
  for (const auto& [key, value] : stored) expected += key.starts_with(name + "/grad/");
  CHECK(gradients == expected);
}

/// Calls the module with its inputs and lists the result's tensors.
template <class M>
void check_module(const std::string& name, M&& module, const Tensors& inputs) {
  check_module(name, module, inputs, [&](auto& m) { return Tensors{m(inputs[0])}; });
}

Tensors listed(const std::pair<Tensor, Tensor>& p) {
  return p.second.defined() ? Tensors{p.first, p.second} : Tensors{p.first};
}
Tensors listed(const std::pair<Tensor, nn::LSTMState>& p) { return {p.first, p.second.h, p.second.c}; }

}  // namespace

TEST_CASE("recurrent layers and cells equal PyTorch's") {
  const Tensor x = input({5, 2, 3}), batch_first = input({2, 5, 3}), line = input({5, 3});
  check_module("rnn", nn::RNN(3, 4), {x}, [&](auto& m) { return listed(m(x)); });
  check_module("rnn_relu",
               nn::RNN(3, 4,
                       {.num_layers = 2,
                        .nonlinearity = nn::RecurrentNonlinearity::relu,
                        .batch_first = true,
                        .bidirectional = true}),
               {batch_first}, [&](auto& m) { return listed(m(batch_first)); });
  const Tensor x2 = input({5, 2, 3}), h = input({2, 2, 4}, 2);
  check_module("gru", nn::GRU(3, 4, {.num_layers = 2}), {x2, h}, [&](auto& m) { return listed(m(x2, h)); });
  check_module("gru_unbatched", nn::GRU(3, 4, {.bias = false, .bidirectional = true}), {line},
               [&](auto& m) { return listed(m(line)); });
  const Tensor x3 = input({5, 2, 3}), x4 = input({5, 2, 3}), h4 = input({4, 2, 4}, 2), c4 = input({4, 2, 4}, 3);
  check_module("lstm", nn::LSTM(3, 4), {x3}, [&](auto& m) { return listed(m(x3)); });
  check_module("lstm_states", nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}), {x4, h4, c4}, [&](auto& m) {
    return listed(m(x4, {h4, c4}));
  });
  const Tensor cell = input({2, 3}), cell_h = input({2, 4}, 2), cell2 = input({2, 3}), cell2_h = input({2, 4}, 2),
               cell3 = input({2, 3});
  check_module("rnn_cell", nn::RNNCell(3, 4), {cell, cell_h}, [&](auto& m) { return Tensors{m(cell, cell_h)}; });
  check_module("gru_cell", nn::GRUCell(3, 4), {cell2, cell2_h}, [&](auto& m) { return Tensors{m(cell2, cell2_h)}; });
  check_module("lstm_cell", nn::LSTMCell(3, 4), {cell3}, [&](auto& m) {
    const auto [next, c] = m(cell3);
    return Tensors{next, c};
  });
}

TEST_CASE("samples of several lengths equal PyTorch's packed sequences") {
  const Tensor x = input({5, 3, 3}), x2 = input({5, 3, 3});
  const std::vector<int64_t> lengths = {3, 5, 1};
  check_module("lstm_lengths", nn::LSTM(3, 4, {.num_layers = 2, .bidirectional = true}), {x},
               [&](auto& m) { return Tensors{m(x, {}, lengths).first}; });
  check_module("gru_lengths", nn::GRU(3, 4), {x2}, [&](auto& m) { return Tensors{m(x2, {}, lengths).first}; });
  nn::GRU gru(3, 4);
  const auto [y, h] = gru(x.detach().to(kFloat32), {}, lengths);
  CHECK(equal(h[0][0], y[2][0]));  // the last state is that of the sample's last step
  CHECK(y[3][0].abs().max().item<double>() == 0);
  CHECK_THROWS_WITH_AS(gru(x.detach().to(kFloat32), {}, {1, 2}), doctest::Contains("2 lengths for a batch of 3"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(gru(x.detach().to(kFloat32), {}, {1, 2, 6}), doctest::Contains("length 6 is outside [1, 5]"),
                       ValueError);
}

TEST_CASE("attention and Transformer layers equal PyTorch's") {
  const Tensor triangle = ones({4, 4}, kBool).triu(1);
  const Tensor padding = tensor<int64_t>({0, 0, 1, 1, 0, 0, 0, 1}).reshape({2, 4}) == 1;
  const Tensor q = input({3, 2, 4}), k = input({4, 2, 4}, 2), v = input({4, 2, 4}, 3);
  check_module("attention", nn::MultiheadAttention(4, 2), {q, k, v}, [&](auto& m) { return listed(m(q, k, v)); });
  const Tensor own = input({2, 4, 4});
  check_module("attention_masks", nn::MultiheadAttention(4, 2, {.batch_first = true}), {own}, [&](auto& m) {
    return listed(
        m(own, own, own, {.key_padding_mask = padding, .attn_mask = triangle, .average_attn_weights = false}));
  });
  const Tensor q2 = input({3, 2, 4}), k2 = input({4, 2, 3}, 2), v2 = input({4, 2, 5}, 3);
  check_module("attention_sizes", nn::MultiheadAttention(4, 2, {.bias = false, .kdim = 3, .vdim = 5}), {q2, k2, v2},
               [&](auto& m) { return listed(m(q2, k2, v2, {.need_weights = false})); });

  const nn::TransformerLayerOptions layer{.dim_feedforward = 8, .dropout = 0.0};
  const Tensor src = input({4, 2, 4});
  check_module("encoder_layer", nn::TransformerEncoderLayer(4, 2, layer), {src},
               [&](auto& m) { return Tensors{m(src, {.src_mask = triangle})}; });
  nn::TransformerLayerOptions first = layer;
  first.norm_first = first.batch_first = true;
  first.activation = nn::TransformerActivation::gelu;
  const Tensor src2 = input({2, 4, 4});
  check_module("encoder_layer_first", nn::TransformerEncoderLayer(4, 2, first), {src2},
               [&](auto& m) { return Tensors{m(src2, {.src_key_padding_mask = padding})}; });
  const Tensor tgt = input({4, 2, 4}), memory = input({3, 2, 4}, 2);
  check_module("decoder_layer", nn::TransformerDecoderLayer(4, 2, layer), {tgt, memory},
               [&](auto& m) { return Tensors{m(tgt, memory, {.tgt_mask = triangle})}; });
  const Tensor from = input({3, 2, 4}), to = input({4, 2, 4}, 2);
  check_module(
      "transformer",
      nn::Transformer({.d_model = 4, .nhead = 2, .num_encoder_layers = 2, .num_decoder_layers = 1, .layer = layer}),
      {from, to}, [&](auto& m) {
        return Tensors{m(from, to, {}, {.tgt_mask = nn::generate_square_subsequent_mask(4, {.dtype = kFloat64})})};
      });
}

TEST_CASE("causal attention is attention with the subsequent mask, with and without weights") {
  manual_seed(2);
  nn::MultiheadAttention attention(8, 2, {.batch_first = true});
  const Tensor x = randn({2, 5, 8});
  const Tensor mask = nn::generate_square_subsequent_mask(5);
  const auto by_mask = attention(x, x, x, {.attn_mask = mask}).first;
  const auto with_weights = attention(x, x, x, {.is_causal = true});
  CHECK(allclose(with_weights.first, by_mask, {.atol = 1e-6}));
  CHECK(with_weights.second.sizes() == Shape{2, 5, 5});
  CHECK(allclose(attention(x, x, x, {.need_weights = false, .is_causal = true}).first, by_mask, {.atol = 1e-6}));
  CHECK(allclose(attention(x[0], x[0], x[0], {.attn_mask = mask}).first, by_mask[0], {.atol = 1e-6}));
  CHECK_THROWS_WITH_AS(nn::MultiheadAttention(8, 3), doctest::Contains("embed_dim 8 does not divide into 3 heads"),
                       ValueError);
}

TEST_CASE("convolution layers of other dimensions and padding equal PyTorch's") {
  check_module("conv1d", nn::Conv1d(2, 4, 3, {.stride = 2, .padding = 1, .groups = 2}), {input({2, 2, 7})});
  check_module("conv2d_reflect", nn::Conv2d(2, 3, 3, {.padding = {1, 2}, .padding_mode = PadMode::reflect}),
               {input({2, 2, 4, 5})});
  check_module("conv2d_same", nn::Conv2d(2, 3, {2, 3}, {.dilation = {1, 2}, .same = true}), {input({1, 2, 4, 5})});
  check_module("conv3d", nn::Conv3d(2, 3, 2, {.padding = 1}), {input({1, 2, 3, 2, 3})});
  check_module("conv_transpose1d", nn::ConvTranspose1d(2, 3, 3, {.stride = 2, .output_padding = 1}),
               {input({2, 2, 4})});
  check_module("conv_transpose3d", nn::ConvTranspose3d(2, 1, 2, {.stride = 2}), {input({1, 2, 2, 2, 2})});
}

TEST_CASE("normalization layers and others with parameters equal PyTorch's") {
  check_module("group_norm", nn::GroupNorm(2, 4), {input({2, 4, 3})});
  check_module("instance_norm", nn::InstanceNorm1d(3, {.affine = true}), {input({2, 3, 4})});
  check_module("rms_norm", nn::RMSNorm(4), {input({3, 4})});
  check_module("local_response_norm", nn::LocalResponseNorm(2), {input({2, 4, 3})});
  check_module("batch_norm1d", nn::BatchNorm1d(3), {input({4, 3})});
  check_module("batch_norm3d", nn::BatchNorm3d(2), {input({2, 2, 2, 2, 2})});
  check_module("prelu", nn::PReLU(3), {input({2, 3, 2})});
  const Tensor a = input({2, 3}), b = input({2, 2}, 2);
  check_module("bilinear", nn::Bilinear(3, 2, 4), {a, b}, [&](auto& m) { return Tensors{m(a, b)}; });
  check_module("embedding_bag", nn::EmbeddingBag(5, 3, {.mode = nn::BagMode::sum}), {}, [](auto& m) {
    return Tensors{m(tensor<int64_t>({0, 2, 2, 4, 1}), tensor<int64_t>({0, 2, 2}))};
  });
  check_module("embedding_bag_mean", nn::EmbeddingBag(5, 3, {.padding_idx = 2}), {}, [](auto& m) {
    return Tensors{m(tensor<int64_t>({0, 2, 3, 2, 4, 4}).reshape({2, 3}))};
  });
  check_module("embedding_bag_max", nn::EmbeddingBag(5, 3, {.mode = nn::BagMode::max}), {}, [](auto& m) {
    return Tensors{m(tensor<int64_t>({0, 2, 3, 1, 4, 4}).reshape({2, 3}))};
  });
}

TEST_CASE("weights that are normalized by parametrizations equal PyTorch's") {
  const auto with = [](auto layer, const auto& parametrize) {
    parametrize(layer);
    return layer;
  };
  const Tensor rows = input({2, 3}), lines = input({2, 2, 5});
  check_module("weight_norm", with(nn::Linear(3, 4), [](nn::Module& m) { nn::weight_norm(m); }), {rows});
  check_module("weight_norm_conv", with(nn::Conv1d(2, 3, 2), [](nn::Module& m) { nn::weight_norm(m, "weight", 1); }),
               {lines});
  const Tensor rows2 = input({2, 3}), lines2 = input({2, 2, 5});
  // The vectors of make_values.py.
  const auto known = [](nn::Module& m) {
    int64_t salt = 1;
    for (const auto& [name, vector] : m.named_buffers()) {
      const Tensor values = formula(vector.numel(), salt++).to(kFloat64);
      vector.copy_(values / sqrt(sum(square(values))));
    }
  };
  const auto call = [&](const Tensor& x) {
    return [&known, x](auto& m) {
      known(m);
      return Tensors{m(x)};
    };
  };
  check_module("spectral_norm", with(nn::Linear(3, 4), [](nn::Module& m) { nn::spectral_norm(m); }), {rows2},
               call(rows2));
  const nn::SpectralNormOptions twice{.n_power_iterations = 2, .dim = 1};
  check_module("spectral_norm_conv",
               with(nn::ConvTranspose1d(2, 3, 2), [&](nn::Module& m) { nn::spectral_norm(m, "weight", twice); }),
               {lines2}, call(lines2));
}

TEST_CASE("the adaptive softmax and weighted bags equal PyTorch's") {
  const Tensor x = input({5, 4}), weights = input({4});
  const Tensor target = tensor<int64_t>({0, 9, 4, 2, 6});
  check_module("adaptive_softmax", nn::AdaptiveLogSoftmaxWithLoss(4, 10, {3, 6}, {.div_value = 2.0, .head_bias = true}),
               {x}, [&](auto& m) {
                 const auto result = m(x, target);
                 return Tensors{result.output, result.loss};
               });
  nn::AdaptiveLogSoftmaxWithLoss net(4, 10, {3, 6});
  const Tensor some = randn({5, 4}), all = net.log_prob(some);
  CHECK(all.sizes() == Shape{5, 10});
  CHECK((exp(all).sum(1) - 1).abs().max().item<double>() < 1e-5);
  CHECK(equal(net.predict(some), all.argmax(1)));
  check_module("embedding_bag_weights", nn::EmbeddingBag(5, 3, {.mode = nn::BagMode::sum, .include_last_offset = true}),
               {weights}, [&](auto& m) {
                 return Tensors{m(tensor<int64_t>({0, 2, 2, 4}), tensor<int64_t>({0, 1, 4}), weights)};
               });
}
