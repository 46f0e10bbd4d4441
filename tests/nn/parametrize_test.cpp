#include "support/comparison.h"

#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>
#include <levin/optim/sgd.h>

#include <doctest/doctest.h>

using namespace levin;
using namespace levin::test;

namespace {

struct Symmetric : nn::Module {
  Tensor forward(const Tensor& x) override { return triu(x) + triu(x, 1).transpose(-2, -1); }
};

std::vector<std::string> names_of(const StateDict& state) {
  std::vector<std::string> names;
  for (const auto& [name, value] : state) names.push_back(name);
  return names;
}

Tensor outer_norms(const Tensor& weight) { return sqrt(sum(square(weight), 1)); }

}  // namespace

TEST_CASE("a parametrized weight is computed anew before each call") {
  nn::Linear layer(3, 3, {.bias = false});
  const Tensor x = randn({2, 3}), raw = layer.weight.detach().clone();
  nn::register_parametrization<Symmetric>(layer, "weight");
  CHECK(names_of(layer.state_dict()) == std::vector<std::string>{"parametrizations.weight.original"});
  CHECK(layer.parameters().size() == 1);
  const Tensor expected = triu(raw) + triu(raw, 1).transpose(-2, -1);
  CHECK(equal(layer.weight.detach(), expected));
  CHECK(allclose(layer(x), matmul(x, expected)));
  layer.parameters()[0].detach().fill_(2);
  CHECK(allclose(layer(x), 2.0 * sum(x, 1, true).expand({2, 3})));
}

TEST_CASE("training changes what a weight is computed from, and the law holds at each step") {
  nn::Linear layer(3, 4);
  nn::weight_norm(layer);
  CHECK(names_of(layer.state_dict()) ==
        std::vector<std::string>{"bias", "parametrizations.weight.original0", "parametrizations.weight.original1"});
  optim::SGD sgd(layer.parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    sgd.zero_grad();
    const Tensor loss = square(layer(ones({2, 3}))).sum();
    const Tensor magnitude = layer.parameters()[1].detach().reshape({4});
    CHECK(allclose(outer_norms(layer.weight.detach()), abs(magnitude), {.rtol = 1e-6}));
    loss.backward();
    sgd.step();
  }
}

TEST_CASE("spectral normalization brings the largest singular value to 1") {
  nn::Linear layer(6, 4);
  nn::spectral_norm(layer);
  for (int i = 0; i < 50; ++i) layer(ones({1, 6}));
  CHECK(linalg::svd(layer.weight.detach()).s.data<float>()[0] == approx(1.0, {.relative = 1e-4}));
  layer.eval();
  const Tensor before = layer.named_buffers()[0].second.clone();
  layer(ones({1, 6}));
  CHECK(equal(before, layer.named_buffers()[0].second));
}

TEST_CASE("a copy of a parametrized module computes the same and is trained apart") {
  nn::Sequential net(nn::Linear(3, 4), nn::Linear(4, 2));
  nn::weight_norm(net[0]);
  nn::spectral_norm(net[1]);
  net.eval();
  nn::Sequential copy = nn::clone(net);
  const Tensor x = randn({2, 3});
  CHECK(equal(net(x), copy(x)));
  copy.parameters()[1].detach().fill_(3);
  CHECK(!equal(net(x), copy(x)));
  CHECK(names_of(net.state_dict()) == names_of(copy.state_dict()));
}

TEST_CASE("wrong parametrizations are refused") {
  nn::Linear layer(3, 4);
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  CHECK(message([&] { nn::weight_norm(layer, "wight"); }) == "[parametrize] a Linear has no parameter \"wight\".");
  CHECK(message([&] { nn::weight_norm(layer, "weight", 2); }) ==
        "[weight_norm] dim is 2, but the parameter is (4, 3).");
  CHECK(message([&] { nn::spectral_norm(layer, "weight", {.n_power_iterations = 0}); }) ==
        "[spectral_norm] n_power_iterations is 0; give 1 or more.");
}
