// Layers placed on several devices by hand: gradients flow back the way the values came.
#include <levin/autograd/autograd.h>
#include <levin/kernels/cuda.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

#include <vector>

#include "support/comparison.h"

using namespace levin;
using levin::test::approx;

namespace {

/// Trains an encoder on one device and a decoder on another with the input on the CPU. Returns the loss and all
/// gradients.
std::vector<Tensor> train(Device first, Device second) {
  manual_seed(2);
  nn::Linear encoder(6, 5), decoder(5, 3);
  const Tensor x = randn({4, 6}).requires_grad_();
  encoder.to(first);
  decoder.to(second);
  const Tensor hidden = tanh(encoder(x.to(first)));
  CHECK(hidden.device() == first);
  if (first != second) CHECK_THROWS_AS(decoder(hidden), DeviceError);
  const Tensor loss = square(decoder(hidden.to(second))).sum();
  CHECK(loss.device() == second);
  loss.backward();
  CHECK(x.grad().device() == kCpu);
  CHECK(encoder.weight.grad().device() == first);
  CHECK(decoder.weight.grad().device() == second);
  std::vector<Tensor> all = {loss.detach(),         x.grad(),           encoder.weight.grad(), encoder.bias.grad(),
                             decoder.weight.grad(), decoder.bias.grad()};
  for (Tensor& t : all) t = t.cpu();
  return all;
}

}  // namespace

TEST_CASE("autograd/cross_device_backward") {
  const auto expected = train(kCpu, kCpu);
  std::vector<std::pair<Device, Device>> ways = {{cuda(0), kCpu}, {kCpu, cuda(0)}, {cuda(0), cuda(0)}};
  if (cuda::device_count() > 1) {
    ways.emplace_back(cuda(0), cuda(1));
    ways.emplace_back(cuda(1), cuda(0));
  }
  for (const auto& [first, second] : ways) {
    CAPTURE(to_string(first));
    CAPTURE(to_string(second));
    const auto actual = train(first, second);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto a = actual[i].to_vector<float>(), e = expected[i].to_vector<float>();
      REQUIRE(a.size() == e.size());
      for (std::size_t j = 0; j < a.size(); ++j) CHECK(a[j] == approx(e[j], {.relative = 1e-5}));
    }
  }
  // Moving a tensor to its own device costs nothing, there as here.
  const Tensor there = ones({3}, {.device = cuda(0)});
  CHECK(there.to(cuda(0)).is_same(there));
  CHECK(there.cuda().is_same(there));
}

TEST_CASE("tensors are created directly on their device") {
  nn::Linear net(3, 2);
  net.to(cuda(0));
  CHECK(net.device() == cuda(0));
  const auto before = cuda::memory_allocated(0);
  const auto host = Storage::live_count();
  const Tensor noise = rand({64, 64}, like(net.weight)), ramp = arange(8, {.device = net.device()});
  CHECK(noise.device() == cuda(0));
  CHECK(ramp.device() == cuda(0));
  CHECK(cuda::memory_allocated(0) >= before + 64 * 64 * 4);
  CHECK(Storage::live_count() == host + 2);  // and no storage on the host
}
