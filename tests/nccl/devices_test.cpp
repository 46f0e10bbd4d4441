// One process on several devices: replicas of a module, and layers placed on different devices.
#include "examples/model_parallel/autoencoder.h"
#include "support/comparison.h"

#include <doctest/doctest.h>
#include <levin/kernels/cuda.h>

#include <cstdlib>

using namespace levin;
using levin::test::largest_difference;

namespace {

[[maybe_unused]] const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 8);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 8, 3);
  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
};

/// Returns the output and the gradients of the input and of all parameters.
std::vector<Tensor> step(nn::Module& net, const std::function<Tensor(const Tensor&)>& forward, const Tensor& x) {
  net.zero_grad();
  const Tensor leaf = x.detach().clone().requires_grad_();
  const Tensor y = forward(leaf);
  square(y - 1.0).mean().backward();
  std::vector<Tensor> all = {y.detach(), leaf.grad()};
  for (const auto& p : net.parameters()) all.push_back(p.grad());
  return all;
}

}  // namespace

TEST_CASE("several devices: DataParallel on 2 and 3 matches one device for any batch size") {
  manual_seed(4);
  Net net;
  for (const std::int64_t batch : {1, 2, 5, 12}) {
    const Tensor x = randn({batch, 6});
    net.to(kCpu);
    const auto expected = step(
        net, [&](const Tensor& in) { return net(in); }, x);
    net.to(cuda(0));
    for (const std::vector<Device>& devices : {std::vector{cuda(0), cuda(1)}, std::vector{cuda(0), cuda(2), cuda(3)}}) {
      distributed::DataParallel parallel(net, devices);
      const auto got = step(
          net, [&](const Tensor& in) { return parallel(in); }, x.to(cuda(0)));
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CHECK(got[i].device() == cuda(0));
        CHECK(largest_difference(got[i], expected[i]) < 1e-6);
      }
    }
  }
}

TEST_CASE("several devices: an encoder on one device and a decoder on another train as on one") {
  const auto train = [](const Autoencoder::Devices& of_encoder, const Autoencoder::Devices& of_decoder) {
    manual_seed(1);
    Autoencoder net;
    net.place(of_encoder, of_decoder);
    optim::SGD sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    const Tensor x = rand({4, 1, 28, 28});
    for (int s = 0; s < 2; ++s) {
      sgd.zero_grad();
      const Tensor y = net(x);
      CHECK(y.device() == of_decoder[0]);
      square(y - x.to(y.device())).mean().backward();
      sgd.step();
    }
    std::vector<Tensor> weights;
    for (const auto& p : net.parameters()) weights.push_back(p.detach());
    return weights;
  };
  const auto expected = train({kCpu}, {kCpu});
  for (const auto& [encoder, decoder] : {std::pair<Autoencoder::Devices, Autoencoder::Devices>{{cuda(0)}, {cuda(1)}},
                                         {{cuda(1), cuda(2)}, {cuda(0), cuda(3)}}}) {
    const auto got = train(encoder, decoder);
    CHECK(got.front().device() == encoder[0]);
    CHECK(got.back().device() == decoder[0]);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(largest_difference(got[i], expected[i]) < 1e-5);
  }
}
