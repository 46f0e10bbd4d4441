#include <levin/autograd/ops.h>
#include <levin/nn/forward_result.h>
#include <levin/nn/nn.h>

#include <doctest/doctest.h>

using namespace levin;

namespace {

using Tensors = std::vector<Tensor>;

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 4, 3);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 3, 2, {.bias = false});
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

}  // namespace

TEST_CASE("forward hooks see and replace input and output, and handles remove them") {
  Net net;
  const Tensor x = randn({2, 4});
  int calls = 0;
  HookHandle before = net.fc2.register_forward_pre_hook([&](nn::Module& m, const Tensors& inputs) {
    ++calls;
    CHECK(&m == &net.fc2);
    CHECK(inputs.size() == 1);
    CHECK(inputs[0].sizes() == Shape{2, 3});
    return zeros({2, 3});
  });
  HookHandle after = net.fc2.register_forward_hook([&](nn::Module&, const Tensors& inputs, const Tensors& outputs) {
    ++calls;
    CHECK(inputs[0].to_vector<float>() == std::vector<float>(6, 0.f));
    return outputs[0] + 3.f;
  });
  CHECK(net(x).to_vector<float>() == std::vector<float>(4, 3.f));
  CHECK(calls == 2);
  before.remove();
  after.remove();
  CHECK(net(x).to_vector<float>() != std::vector<float>(4, 3.f));
  CHECK(calls == 2);
}

TEST_CASE("a forward pre-hook may return the output itself, which later hooks see") {
  nn::Linear layer(2, 3);
  auto before = layer.register_forward_pre_hook(
      [](nn::Module&, const Tensors& x) -> Tensor { throw nn::ForwardResult{{x[0] * 2.0}}; });
  auto behind = layer.register_forward_hook([](nn::Module&, const Tensors&, const Tensors& y) { return y[0] + 1.0; });
  CHECK(layer(ones({1, 2})).to_vector<float>() == std::vector<float>{3, 3});
  before.remove();
  behind.remove();
  CHECK(layer(ones({1, 2})).size(1) == 3);
}

TEST_CASE("backward hooks get the complete gradients and may replace the input's") {
  Net net;
  const Tensor x = randn({2, 4}).requires_grad_();
  Tensor seen_input, seen_output;
  HookHandle handle =
      net.fc2.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
        seen_input = grad_inputs[0];
        seen_output = grad_outputs[0];
        return zeros_like(seen_input);
      });
  const Tensor y = net(x);
  (y + y).sum().backward();
  REQUIRE(seen_input.defined());
  CHECK(seen_output.to_vector<float>() == std::vector<float>(4, 2.f));
  CHECK(seen_input.to_vector<float>() == matmul(seen_output, net.fc2.weight.detach()).to_vector<float>());
  CHECK(x.grad().to_vector<float>() == std::vector<float>(8, 0.f));

  // Without an input gradient the hook still runs; after the module is destroyed it does not.
  int calls = 0;
  Tensor loss;
  {
    nn::Linear layer(4, 1);
    layer.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors&) {
      ++calls;
      CHECK(!grad_inputs[0].defined());
      return Tensor();
    });
    layer(ones({1, 4})).sum().backward();
    CHECK(calls == 1);
    loss = layer(ones({1, 4})).sum();
  }
  loss.backward();
  CHECK(calls == 1);
}

TEST_CASE("a backward hook of an activation sees both gradients, though one could be written over the other") {
  nn::ReLU layer;
  Tensor seen_input, seen_output;
  layer.register_full_backward_hook([&](nn::Module&, const Tensors& grad_inputs, const Tensors& grad_outputs) {
    seen_input = grad_inputs[0].clone();
    seen_output = grad_outputs[0].clone();
    return Tensor();
  });
  const Tensor x = tensor({-1.0f, 2.0f}).requires_grad_();
  (layer(x * 1.0f) * tensor({3.0f, 5.0f})).sum().backward();
  CHECK(seen_output.to_vector<float>() == std::vector<float>{3, 5});
  CHECK(seen_input.to_vector<float>() == std::vector<float>{0, 5});
}
