#include "support/comparison.h"
#include "support/sentences.h"

#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <limits>

using namespace levin;
using namespace levin::test;
using nn::QuantizeMode;

namespace {

struct QuantizedNet : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 2, 6, 3, {.padding = 1});
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6 * 64, 40);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 40, 10, {.bias = false});
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(flatten(relu(conv(x)), 1)))); }
};

constexpr QuantizeMode kModes[] = {QuantizeMode::dynamic_int8, QuantizeMode::weight_only_int8};

double relative_error(const Tensor& y, const Tensor& expected) {
  return (norm(y - expected) / norm(expected)).item<double>();
}

std::vector<std::string> types_of(const nn::Module& module) {
  std::vector<std::string> types;
  for (const auto& [name, value] : module.state_dict())
    types.push_back(name + " " + std::string(name_of(value.dtype())));
  return types;
}

}  // namespace

TEST_CASE("a weight becomes int8 with the greatest magnitude of each channel at 127") {
  const Tensor w = from_data<float>({0.5f, -1.0f, 0.25f, 0, 0, 0, 3.0f, 2.99f, -0.01f}, {3, 3});
  const auto q = quantize_weight_int8(w);
  CHECK(q.values.to_vector<std::int8_t>() == std::vector<std::int8_t>{64, -127, 32, 0, 0, 0, 127, 127, 0});
  CHECK(q.scale.to_vector<float>() == std::vector<float>{1.0f / 127.0f, 1.0f, 3.0f / 127.0f});
  CHECK(q.scale.sizes() == Shape{3, 1});
  const Tensor big = randn({20, 3, 5, 5});
  const auto conv = quantize_weight_int8(big);
  CHECK(conv.scale.sizes() == Shape{20, 1, 1, 1});
  // Rounding is to the nearest: no value is off by more than half of its channel's scale.
  const Tensor off = abs(dequantize_weight_int8(conv.values, conv.scale) - big) / conv.scale;
  CHECK(off.max().item<double>() <= 0.5 + 1e-5);
  CHECK(off.max().item<double>() > 0.4);
}

TEST_CASE("quantized layers compute nearly the same, and say so") {
  manual_seed(3);
  const Tensor x = randn({5, 2, 8, 8});
  for (const QuantizeMode mode : kModes) {
    QuantizedNet net;
    net.eval();
    const no_grad guard;
    const Tensor expected = net(x);
    CHECK(nn::quantize_(net, {.mode = mode}) == std::vector<std::string>{"conv", "fc1", "fc2"});
    const double error = relative_error(net(x), expected);
    CHECK(error < 0.03);
    CHECK(error > 1e-5);  // it is quantized
    CHECK(to_string(net).find("bias=True, " + nn::to_string(mode)) != std::string::npos);
    CHECK(to_string(net).find("padding=(1, 1), " + nn::to_string(mode)) != std::string::npos);
    CHECK(types_of(net) ==
          std::vector<std::string>{"conv.weight int8", "conv.bias float32", "conv.weight_scale float32",
                                   "fc1.weight int8", "fc1.bias float32", "fc1.weight_scale float32",
                                   "fc2.weight int8", "fc2.weight_scale float32"});
  }
}

TEST_CASE("the two modes use the two kinds of products") {
  manual_seed(3);
  nn::Linear dynamic(30, 4);
  nn::Conv2d conv(2, 3, 3);
  const Tensor x = randn({2, 30}), image = randn({1, 2, 5, 5});
  const auto q = quantize_weight_int8(dynamic.weight), k = quantize_weight_int8(conv.weight);
  const no_grad guard;
  nn::Linear weight_only = nn::clone(dynamic);
  nn::quantize_(dynamic);
  nn::quantize_(weight_only, {.mode = QuantizeMode::weight_only_int8});
  nn::quantize_(conv);
  CHECK(equal(dynamic(x), linear_int8_dynamic(x, q.values, q.scale, dynamic.bias)));
  CHECK(equal(weight_only(x), linear_int8_weight_only(x, q.values, q.scale, dynamic.bias)));
  CHECK(equal(conv(image), conv2d_int8_dynamic(image, k.values, k.scale, conv.bias)));
  CHECK_FALSE(equal(dynamic(x), weight_only(x)));
}

TEST_CASE("a filter chooses layers by name and class") {
  QuantizedNet net;
  const auto names = nn::quantize_(net, {.filter = [](const std::string& name, const nn::Module& layer) {
                                     return layer.type_name() == "Linear" && name != "fc2";
                                   }});
  CHECK(names == std::vector<std::string>{"fc1"});
  CHECK(net.conv.weight.dtype() == kFloat32);
  CHECK(net.fc2.weight.dtype() == kFloat32);
}

TEST_CASE("quantized state goes into another quantized module, and into a clone") {
  manual_seed(4);
  QuantizedNet net, other;
  nn::quantize_(net);
  nn::quantize_(other);
  const no_grad guard;
  const Tensor x = randn({2, 2, 8, 8}), y = net(x);
  CHECK_FALSE(equal(other(x), y));
  CHECK(other.load_state_dict(net.state_dict()).converted.empty());
  CHECK(equal(other(x), y));
  QuantizedNet copy = nn::clone(net);
  CHECK(equal(copy(x), y));
  CHECK(copy.fc1.weight.dtype() == kInt8);
  QuantizedNet second = nn::clone(copy);
  CHECK(equal(second(x), y));
  copy.fc1.weight.fill_(0);
  CHECK(equal(net(x), y));
}

TEST_CASE("a Transformer's outputs stay near those in float32") {
  manual_seed(6);
  nn::TransformerEncoderLayer layer(64, 4, {.dim_feedforward = 128, .dropout = 0.0, .batch_first = true});
  layer.eval();
  const no_grad guard;
  const Tensor x = randn({3, 10, 64}), expected = layer(x);
  for (const QuantizeMode mode : kModes) {
    nn::TransformerEncoderLayer copy = nn::clone(layer);
    CHECK(nn::quantize_(copy, {.mode = mode}) == std::vector<std::string>{"self_attn.out_proj", "linear1", "linear2"});
    const double error = relative_error(copy(x), expected);
    CHECK(error < 0.01);
    CHECK(error > 1e-5);
  }
}

TEST_CASE("a weight that another layer shares stays as it is there") {
  nn::Embedding embedding(12, 8);
  nn::Linear head(8, 12);
  head.weight = embedding.weight;
  nn::quantize_(head);
  CHECK(head.weight.dtype() == kInt8);
  CHECK(embedding.weight.dtype() == kFloat32);
  CHECK(embedding.weight.requires_grad());
}

TEST_CASE("weight-only layers pass gradients on, and dynamic ones refuse by name") {
  nn::Linear layer(6, 4);
  const Tensor x = randn({3, 6}).requires_grad_();
  const auto q = quantize_weight_int8(layer.weight);
  nn::quantize_(layer, {.mode = QuantizeMode::weight_only_int8});
  layer(x).sum().backward();
  CHECK(allclose(x.grad(), dequantize_weight_int8(q.values, q.scale).sum(0, true).expand({3, 6}), {.rtol = 1e-5}));
  CHECK(allclose(layer.bias.grad(), full({4}, 3.0)));
  CHECK_FALSE(layer.weight.requires_grad());
  nn::Linear dynamic(6, 4);
  nn::quantize_(dynamic);
  const Tensor loss = dynamic(x).sum();
  check_sentences({{"[int8_dynamic] a product of quantized values has no derivative. Train with float32 weights",
                    [&] { loss.backward(); }}});
  nn::Conv2d conv(1, 2, 3);
  nn::quantize_(conv);
  CHECK_THROWS_AS(conv(randn({1, 1, 5, 5})).sum().backward(), GradError);
}

TEST_CASE("16-bit modules are quantized as well, and keep their type") {
  for (const QuantizeMode mode : kModes) {
    nn::Linear layer(32, 8);
    layer.to(kBFloat16);
    const no_grad guard;
    const Tensor x = randn({3, 32}).to(kBFloat16), expected = layer(x);
    nn::quantize_(layer, {.mode = mode});
    const Tensor y = layer(x);
    CHECK(y.dtype() == kBFloat16);
    CHECK(relative_error(y.to(kFloat32), expected.to(kFloat32)) < 0.03);
  }
}

TEST_CASE("what cannot be quantized is refused in one sentence") {
  nn::Linear twice(3, 2);
  nn::quantize_(twice);
  nn::ReLU relu;
  nn::Linear normed(3, 2);
  nn::weight_norm(normed);
  nn::Linear infinite(3, 2);
  infinite.weight.detach().fill_(std::numeric_limits<double>::infinity());
  nn::Linear linear(3, 2);
  check_sentences(
      {{"[quantize_] \"\" (Linear) is quantized already. Quantize a module in float32", [&] { nn::quantize_(twice); }},
       {"[quantize_] ReLU has no Linear or Conv2d layer to quantize", [&] { nn::quantize_(relu); }},
       {"has no Linear or Conv2d layer that the filter chooses",
        [&] { nn::quantize_(linear, {.filter = [](const std::string&, const nn::Module&) { return false; }}); }},
       {"[quantize_] the weight of \"\" (Linear) is computed from other parameters. Remove the parametrization",
        [&] { nn::quantize_(normed); }},
       {"[quantize_weight_int8] the weight has a value that is not finite", [&] { nn::quantize_(infinite); }},
       {"[quantize_weight_int8] weight is a number; a scale belongs to each index",
        [] { quantize_weight_int8(ones({})); }},
       {"[quantize_mode] \"int4\" is no mode. Use dynamic_int8 or weight_only_int8", [] { nn::quantize_mode("int4"); }},
       {"\"weight\" is int8 here and float32 there", [&] { twice.load_state_dict(linear.state_dict()); }}});
  CHECK(nn::quantize_mode("weight_only_int8") == QuantizeMode::weight_only_int8);
  CHECK(nn::quantize_mode("dynamic_int8") == QuantizeMode::dynamic_int8);
}
