// A third-party device: its memory and streams use DeviceBackend, its kernels the free entry of every table. The cases
// of all operations, and training on it, show that this suffices.
#include "cases/cases.h"
#include "cases/host_port.h"
#include "support/sentences.h"

#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

using namespace levin;
using namespace levin::test;

TEST_CASE("device/third_party_device_passes_opcases") {
  const Device device = other_host();
  CHECK_THROWS_WITH_AS(neg(ones({2}).to(device)), doctest::Contains("there is no kernel for custom0"), DeviceError);
  port_kernels();
  for (const OpCase& c : all_cases()) {
    const std::string wrong = check_device(c, device);
    CHECK_MESSAGE(wrong.empty(), wrong);
  }
}

TEST_CASE("device/tensors_like_another_one_obey_the_device_option") {
  port_kernels();
  const Device device = other_host();
  const Tensor x = ones({2, 3}, kFloat64).to(device);
  for (const Tensor& t : {empty_like(x), zeros_like(x), ones_like(x), full_like(x, 2), rand_like(x), randn_like(x),
                          randint_like(x, 0, 3), zeros_like(x, kFloat32), zeros_like(x, {.requires_grad = true})})
    CHECK(t.device() == device);
  const TensorOptions here{.device = kCpu};
  for (const Tensor& t : {empty_like(x, here), zeros_like(x, here), ones_like(x, here), full_like(x, 2, here),
                          rand_like(x, here), randn_like(x, here), randint_like(x, 0, 3, here)}) {
    CHECK(t.device() == kCpu);
    CHECK(t.dtype() == kFloat64);
  }
  const Tensor y = zeros({2});
  CHECK(zeros_like(y, {.device = device}).device() == device);
  CHECK(zeros_like(y).device() == kCpu);
}

TEST_CASE("device/values_reach_a_device_in_their_own_type") {
  const TensorOptions there{.device = other_host()};
  CHECK(from_data<int64_t>({1, 2}, {2}, there).dtype() == kInt64);
  CHECK(tensor({1, 2}, there).cpu().to_vector<int64_t>() == std::vector<int64_t>{1, 2});
  CHECK(tensor(3, there).dtype() == kInt64);
}

TEST_CASE("device/operands_on_two_devices_are_refused_with_both_names") {
  port_kernels();
  const Device device = other_host();
  const Tensor x = ones({2, 2}), there = x.to(device), index = zeros({2}, kInt64), far = index.to(device);
  const Tensor image = ones({1, 1, 2, 2});
  check_sentences({
      {"[matmul] a is on cpu, b on custom0:0. Move one with x.to(device)", [&] { matmul(x, there); }},
      {"[addmm] the bias is on custom0:0, a on cpu. Move one with x.to(device)", [&] { addmm(there, x, x); }},
      {"[cat] tensor 1 is on custom0:0, tensor 0 on cpu. Move one with x.to(device)",
       [&] {
         cat({x, there});
       }},
      {"[index_select] x is on cpu, the index on custom0:0. Move one with x.to(device)",
       [&] { index_select(x, 0, far); }},
      {"[index_add] x is on cpu, source on custom0:0. Move one with x.to(device)",
       [&] { index_add(x, 0, index, there); }},
      {"[index] x is on cpu, the index on custom0:0. Move it with index.to(x.device())",
       [&] { index_put(x, {far}, x); }},
      {"[index_put] x is on cpu, values on custom0:0. Move one with x.to(device)",
       [&] { index_put(x, {index}, there); }},
      {"[conv2d] x is on cpu, weight on custom0:0. Move one with x.to(device)",
       [&] { conv2d(image, image.to(device)); }},
      {"[scaled_dot_product_attention] q is on cpu, k on cpu, v on custom0:0. Move them with x.to(device)",
       [&] { scaled_dot_product_attention(x, x, there); }},
  });
}

namespace {

struct Training {
  std::vector<float> losses;
  std::vector<std::vector<float>> state;
  Device where;
};

/// Twelve training steps of a small convolutional net on two classes of images, bright at the top or at the bottom.
Training train_on(Device device) {
  manual_seed(3);
  nn::Sequential net(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(), nn::MaxPool2d(2),
                     nn::Flatten(), nn::Dropout(0.2), nn::Linear(4 * 4 * 4, 2));
  net.to(device);
  optim::AdamW opt(net.parameters(), {.lr = 0.02});
  Training result{{}, {}, net.device()};
  for (int step = 0; step < 12; ++step) {
    const Tensor y = randint(0, 2, {16});                                      // (16)
    const Tensor bright = y.to(kFloat32).reshape({16, 1, 1, 1}) * 2 - 1;       // -1 or 1
    const Tensor ramp = linspace(-1, 1, 8).reshape({1, 1, 8, 1});              // from top to bottom
    const Tensor x = (bright * ramp + randn({16, 1, 8, 8}) * 0.5).to(device);  // (16, 1, 8, 8)
    const Tensor loss = cross_entropy(net(x), y.to(device));
    opt.zero_grad();
    loss.backward();
    optim::clip_grad_norm_(net.parameters(), 1.0);
    opt.step();
    CHECK(loss.device() == device);
    result.losses.push_back(loss.item<float>());
  }
  for (const auto& [name, t] : net.state_dict()) result.state.push_back(t.cpu().to_vector<float>());
  return result;
}

}  // namespace

TEST_CASE("device/third_party_device_trains") {
  port_kernels();
  const Training here = train_on(kCpu), there = train_on(other_host(1));
  CHECK(there.where == other_host(1));
  CHECK(there.losses == here.losses);
  CHECK(there.state == here.state);
  CHECK(there.losses.back() < 0.5 * there.losses.front());
}
