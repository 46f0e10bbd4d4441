// Ten training steps from the same weights and images give PyTorch's losses.

#include "support/stored_values.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

/// Initial weights of make_values.py: the formula times a power of two near 1 / sqrt(fan in of the layer).
void set_weights(nn::Module& net) {
  no_grad guard;
  int64_t salt = 0;
  double scale = 1;
  for (const Parameter& p : net.parameters()) {
    if (p.dim() > 1) scale = std::exp2(-std::nearbyint(std::log2(static_cast<double>(p.numel() / p.size(0))) / 2));
    p.copy_(formula(p.numel(), salt++).view(p.sizes()) * scale);
  }
}

void check_losses(const std::string& name, nn::Module& net, optim::Optimizer&& optimizer) {
  const std::vector<double> expected = read_stored_values("training.txt").at(name).to_vector<double>();
  set_weights(net);
  for (int64_t step = 0; step < 10; ++step) {
    const Tensor x = formula(32 * 784, 50 + step % 2).view({32, 1, 28, 28});
    const Tensor y = remainder(arange(32) * 7 + step % 2, 10);
    const Tensor loss = cross_entropy(net(x), y);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    const double want = expected[static_cast<std::size_t>(step)];
    CHECK_MESSAGE(std::abs(loss.item<double>() - want) <= 1e-5 * want, name, " step ", step, ": ", loss.item<double>(),
                  " expected ", want);
  }
}

void check_both(const std::string& name, nn::Module& net) {
  check_losses(name + "/sgd", net, optim::SGD(net.parameters(), {.lr = 0.1, .momentum = 0.9}));
  check_losses(name + "/adam", net, optim::Adam(net.parameters(), {.lr = 2e-3, .eps = 1e-3}));
}

}  // namespace

TEST_CASE("ten steps of the mlp have PyTorch's losses") {
  nn::Sequential net(nn::Flatten(), nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                     nn::Linear(512, 10));
  check_both("mlp", net);
}

TEST_CASE("ten steps of lenet have PyTorch's losses") {
  nn::Sequential net(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(16, 32, 5),
                     nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(800, 128), nn::ReLU(),
                     nn::Linear(128, 10));
  check_both("lenet", net);
}
