#include "support/comparison.h"
#include "support/tolerance.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using levin::test::approx;

namespace {

struct Moments {
  double mean = 0, std = 0, low = 1e300, high = -1e300;
};
Moments moments(const Tensor& t) {
  Moments m;
  double squares = 0;
  const auto values = t.to_vector<double>();
  for (const double v : values) {
    m.mean += v / static_cast<double>(values.size());
    m.low = std::min(m.low, v);
    m.high = std::max(m.high, v);
  }
  for (const double v : values) squares += (v - m.mean) * (v - m.mean) / static_cast<double>(values.size());
  m.std = std::sqrt(squares);
  return m;
}

/// Checks mean and standard deviation within six standard errors of n samples.
void check_moments(const Tensor& t, double mean, double std) {
  const Moments m = moments(t);
  const double n = static_cast<double>(t.numel());
  CHECK(std::abs(m.mean - mean) < 6 * std / std::sqrt(n));
  CHECK(std::abs(m.std - std) < 6 * std / std::sqrt(2 * n));
}

}  // namespace

TEST_CASE("linear and convolution weights are initialised uniformly within 1 / sqrt(fan in)") {
  manual_seed(3);
  const nn::Linear linear(100, 300);
  const double bound = 0.1;
  CHECK(moments(linear.weight).high <= bound);
  CHECK(moments(linear.weight).low >= -bound);
  CHECK(moments(linear.weight).high > 0.99 * bound);
  check_moments(linear.weight, 0, bound / std::sqrt(3.0));
  check_moments(linear.bias, 0, bound / std::sqrt(3.0));
  const nn::Conv2d conv(8, 64, 5, {.groups = 2});
  CHECK(conv.weight.sizes() == Shape{64, 4, 5, 5});
  check_moments(conv.weight, 0, 0.1 / std::sqrt(3.0));
  const nn::ConvTranspose2d up(8, 6, 3);
  CHECK(up.weight.sizes() == Shape{8, 6, 3, 3});
  check_moments(up.weight, 0, 1 / std::sqrt(6.0 * 9) / std::sqrt(3.0));
  CHECK(!nn::Linear(2, 3, {.bias = false}).bias.defined());
}

TEST_CASE("initialisers") {
  manual_seed(4);
  const Tensor w = empty({200, 300});
  check_moments(nn::init::xavier_uniform_(w, 2.0), 0, 2 * std::sqrt(2.0 / 500));
  CHECK(moments(w).high <= 2 * std::sqrt(6.0 / 500));
  check_moments(nn::init::xavier_normal_(w), 0, std::sqrt(2.0 / 500));
  check_moments(nn::init::kaiming_uniform_(w, {.nonlinearity = nn::init::Nonlinearity::relu}), 0, std::sqrt(2.0 / 300));
  check_moments(
      nn::init::kaiming_normal_(w, {.mode = nn::init::Fan::out, .nonlinearity = nn::init::Nonlinearity::relu}), 0,
      std::sqrt(2.0 / 200));
  check_moments(nn::init::normal_(w, 1.0, 0.5), 1, 0.5);
  check_moments(nn::init::uniform_(w, 2.0, 3.0), 2.5, 1 / std::sqrt(12.0));
  CHECK(moments(nn::init::constant_(w, 3.0)).low == 3.0);
  CHECK(moments(w).high == 3.0);
  CHECK(nn::init::calculate_gain(nn::init::Nonlinearity::tanh) == 5.0 / 3);
  CHECK(nn::init::calculate_fans(empty({6, 4, 3, 5})).in == 60);
  CHECK(nn::init::calculate_fans(empty({6, 4, 3, 5})).out == 90);
  CHECK_THROWS_AS(nn::init::xavier_uniform_(empty({3})), ShapeError);
}

TEST_CASE("an option of N dimensions is one number or N in braces") {
  const std::int64_t size = 3;
  CHECK(Tuple<1>(2)[0] == 2);
  CHECK(Tuple<3>(size) == Tuple<3>{3, 3, 3});
  CHECK(Tuple<3>{1, size, 2}[1] == 3);
  CHECK(Tuple<2>{1, 2} != Tuple<2>{2, 1});
  static_assert(!std::is_constructible_v<Tuple<3>, int, int>);
  static_assert(!std::is_constructible_v<Tuple<2>, double>);
  const nn::AvgPool2d pool({1, 2}, {.stride = {{2, 1}}, .padding = {0, 1}});
  CHECK(pool.extra_repr() == "kernel_size=(1, 2), stride=(2, 1), padding=(0, 1)");
  CHECK(pool.kernel_size[1] == 2);
}

TEST_CASE("layers match their operations") {
  manual_seed(5);
  const auto same = [](const Tensor& a, const Tensor& b) { CHECK(test::compare(a, b, {.ulps = 0}) == ""); };
  const Tensor x = randn({2, 4, 8, 8}), flat = randn({3, 6});
  nn::Linear linear(6, 5);
  same(linear(flat), levin::linear(flat, linear.weight, linear.bias));
  nn::Conv2d conv(4, 6, {3, 5}, {.stride = 2, .padding = {1, 2}, .groups = 2});
  same(conv(x), conv2d(x, conv.weight, conv.bias, {.stride = 2, .padding = {1, 2}, .groups = 2}));
  nn::ConvTranspose2d up(4, 3, 3, {.stride = 2, .padding = 1, .output_padding = 1});
  same(up(x), conv_transpose2d(x, up.weight, up.bias, {.stride = 2, .padding = 1, .output_padding = 1}));
  CHECK(up(x).sizes() == Shape{2, 3, 16, 16});
  nn::MaxPool2d max_pool(3, {.stride = 2, .padding = 1});
  same(max_pool(x), max_pool2d(x, 3, {.stride = 2, .padding = 1}));
  nn::AvgPool2d avg_pool(2);
  same(avg_pool(x), avg_pool2d(x, 2));
  nn::LayerNorm norm(Shape{8, 8});
  same(norm(x), layer_norm(x, {8, 8}, norm.weight, norm.bias));
  nn::Embedding table(10, 4, {.padding_idx = -1});
  const Tensor index = from_data<int64_t>({1, 9, 3}, {3});
  same(table(index), embedding(table.weight, index, 9));
  CHECK(table.weight[9].to_vector<float>() == std::vector<float>(4, 0.f));
  same(nn::ReLU()(flat), relu(flat));
  same(nn::LeakyReLU(0.2)(flat), leaky_relu(flat, 0.2));
  same(nn::GELU(Approximate::tanh)(flat), gelu(flat, Approximate::tanh));
  same(nn::Tanh()(flat), tanh(flat));
  same(nn::Sigmoid()(flat), sigmoid(flat));
  same(nn::Flatten()(x), flatten(x, 1));
  same(nn::Identity()(x), x);
  for (nn::Module* layer : std::initializer_list<nn::Module*>{&conv, &up, &max_pool, &avg_pool}) {
    const Tensor image = x[1];
    same((*layer)(image), (*layer)(image.unsqueeze(0))[0]);
  }
}

TEST_CASE("dropout is active only in training") {
  nn::Dropout drop(0.4);
  const Tensor x = ones({10000});
  manual_seed(1);
  double zeros_seen = 0;
  for (const float v : drop(x).to_vector<float>()) {
    CHECK((v == 0.f || v == approx(1 / 0.6, {.relative = 1e-6})));
    zeros_seen += v == 0.f;
  }
  CHECK(std::abs(zeros_seen / 10000 - 0.4) < 6 * std::sqrt(0.24 / 10000));
  drop.eval();
  CHECK(drop(x).to_vector<float>() == x.to_vector<float>());
  CHECK_THROWS_AS(nn::Dropout(1.5), ValueError);
}

TEST_CASE("batch norm counts batches and updates its running statistics") {
  nn::BatchNorm2d norm(2), average(2, {.momentum = std::nullopt}),
      plain(2, {.affine = false, .track_running_stats = false});
  const Tensor a = full({1, 2, 1, 2}, 1.f), b = full({1, 2, 1, 2}, 4.f);
  norm(a), norm(b), average(a), average(b);
  CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
  CHECK(norm.running_mean.to_vector<float>()[0] == approx(0.9 * 0.1 + 0.4, {.relative = 1e-6}));
  CHECK(norm.running_var.to_vector<float>()[0] == approx(0.81, {.relative = 1e-6}));
  CHECK(average.running_mean.to_vector<float>()[1] == 2.5f);
  norm.eval();
  const float expected = static_cast<float>((4.0 - 0.49) / std::sqrt(0.81 + 1e-5));
  CHECK(norm(b).to_vector<float>()[0] == approx(expected, {.relative = 1e-6}));
  CHECK(norm.num_batches_tracked.item<int64_t>() == 2);
  plain.eval();
  CHECK(plain(b).to_vector<float>()[0] == 0.f);
  CHECK(plain.state_dict().empty());
  CHECK_THROWS_AS(norm(ones({2, 2})), ShapeError);
}

TEST_CASE("layers refuse invalid arguments") {
  CHECK_THROWS_AS(nn::Conv2d(3, 4, 3, {.groups = 2}), ValueError);
  CHECK_THROWS_AS(nn::Conv2d(0, 4, 3), ValueError);
  CHECK_THROWS_AS(nn::Conv2d(2, 4, 0), ValueError);
  CHECK_THROWS_AS(nn::Embedding(3, 4, {.padding_idx = 3}), IndexError);
}

TEST_CASE("losses as modules") {
  const Tensor logits = randn({4, 3}), label = from_data<int64_t>({0, 2, 1, 1}, {4}), target = rand({4, 3});
  const auto same = [](const Tensor& a, const Tensor& b) { CHECK(test::compare(a, b, {.ulps = 0}) == ""); };
  same(nn::CrossEntropyLoss({.label_smoothing = 0.1})(logits, label),
       cross_entropy(logits, label, {.label_smoothing = 0.1}));
  same(nn::NLLLoss()(log_softmax(logits, 1), label), nll_loss(log_softmax(logits, 1), label));
  same(nn::MSELoss(Reduction::sum)(logits, target), mse_loss(logits, target, Reduction::sum));
  same(nn::BCEWithLogitsLoss()(logits, target), bce_with_logits(logits, target));
  nn::CrossEntropyLoss weighted({.weight = ones({3})});
  CHECK(weighted.state_dict().contains("weight"));
  CHECK(nn::CrossEntropyLoss().state_dict().empty());
}

TEST_CASE("sequential") {
  nn::Sequential net(nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 2));
  CHECK(net.size() == 3);
  const Tensor x = randn({5, 3});
  auto& first = dynamic_cast<nn::Linear&>(net[0]);
  auto& last = dynamic_cast<nn::Linear&>(net[2]);
  CHECK(net(x).to_vector<float>() == last(tanh(first(x))).to_vector<float>());
  net.push_back(nn::ReLU());
  CHECK(net.size() == 4);
  CHECK_THROWS_AS(net[4], IndexError);
  CHECK(net.parameters()[2].name == "2.weight");
}

TEST_CASE("sequential networks of sequential networks") {
  nn::Sequential net(nn::Sequential(nn::Linear(3, 4), nn::Tanh()), nn::Sequential(nn::Linear(4, 2)));
  CHECK(net.size() == 2);
  std::string names;
  for (const auto& [name, t] : net.state_dict()) names += name + " ";
  CHECK(names == "0.0.weight 0.0.bias 1.0.weight 1.0.bias ");
  const Tensor x = randn({5, 3});
  CHECK(net(x).to_vector<float>() == net[1](net[0](x)).to_vector<float>());
  nn::Sequential copy = nn::clone(net);
  CHECK(copy(x).to_vector<float>() == net(x).to_vector<float>());
  nn::Sequential outer;
  outer.push_back(nn::Sequential(nn::Linear(3, 4)));
  CHECK(outer.parameters()[0].name == "0.0.weight");
}

TEST_CASE("layers pass non-default options on") {
  manual_seed(6);
  const auto same = [](const Tensor& a, const Tensor& b) { CHECK(test::compare(a, b, {.ulps = 0}) == ""); };
  const auto differ = [](const Tensor& a, const Tensor& b) {
    REQUIRE(a.numel() == b.numel());
    CHECK(a.to_vector<float>() != b.to_vector<float>());
  };
  const Tensor x = randn({2, 4, 9, 8});
  nn::Conv2d conv(4, 6, 3, {.padding = 2, .dilation = {2, 1}, .groups = 2});
  same(conv(x), conv2d(x, conv.weight, conv.bias, {.padding = 2, .dilation = {2, 1}, .groups = 2}));
  nn::ConvTranspose2d up(4, 6, 3, {.stride = 2, .groups = 2, .dilation = {1, 2}});
  same(up(x), conv_transpose2d(x, up.weight, up.bias, {.stride = 2, .groups = 2, .dilation = {1, 2}}));
  nn::MaxPool2d max_pool(2, {.stride = 3, .padding = 1, .dilation = 2, .ceil_mode = true});
  same(max_pool(x), max_pool2d(x, 2, {.stride = 3, .padding = 1, .dilation = 2, .ceil_mode = true}));
  nn::AvgPool2d avg_pool(3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
  same(avg_pool(x), avg_pool2d(x, 3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false}));
  same(nn::Flatten(0, 2)(x), flatten(x, 0, 2));
  nn::LayerNorm norm(Shape{9, 8}, {.eps = 0.5});
  same(norm(x), layer_norm(x, {9, 8}, norm.weight, norm.bias, 0.5));
  differ(norm(x), layer_norm(x, {9, 8}, norm.weight, norm.bias));
  nn::BatchNorm2d batch(4, {.eps = 0.5}), plain(4);
  differ(batch(x), plain(x));
  batch.eval();
  const Tensor evaluated = batch_norm(x, batch.running_mean, batch.running_var, batch.weight, batch.bias,
                                      {.training = false, .eps = 0.5});
  same(batch(x), evaluated);
}

TEST_CASE("an embedding layer and its clone give the padding row no gradient") {
  manual_seed(7);
  nn::Embedding table(5, 2, {.padding_idx = 1});
  nn::Embedding copy = nn::clone(table);
  const Tensor index = from_data<int64_t>({1, 0, 1, 4}, {4});
  for (nn::Embedding* layer : {&table, &copy}) {
    (*layer)(index).sum().backward();
    CHECK(layer->weight.grad().to_vector<float>() == std::vector<float>{1, 1, 0, 0, 0, 0, 0, 0, 1, 1});
  }
}

TEST_CASE("losses: a clone has weights of its own, and so has a loss beside the tensor that it was given") {
  const Tensor given = tensor({1.0, 2.0});
  nn::CrossEntropyLoss loss({.weight = given});
  auto copy = nn::clone(loss);
  copy.to(kFloat64);
  CHECK(loss.options.weight.dtype() == kFloat32);
  CHECK(given.dtype() == kFloat32);
  given.fill_(7);
  CHECK(loss.options.weight.to_vector<float>() == std::vector<float>{1, 2});
  CHECK(loss.state_dict().at("weight").to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("dropout1d to 3d drop whole channels, also of inputs without a batch") {
  manual_seed(2);
  nn::Dropout1d one(0.5);
  nn::Dropout3d three(0.5);
  for (const Tensor& y : {one(ones({64, 5})), three(ones({64, 2, 2, 3})).flatten(1)}) {
    const Tensor per_channel = (y != 0).to(kInt64).sum(1);  // (64)
    CHECK(((per_channel == 0) | (per_channel == y.size(1))).all().item<bool>());
    const auto kept = (per_channel != 0).sum().item<std::int64_t>();
    CHECK(kept > 10);
    CHECK(kept < 54);
  }
  CHECK(nn::clone(one).p == 0.5);
}
