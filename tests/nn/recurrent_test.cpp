// Recurrent layers beyond PyTorch's stored values: second derivatives, in-place edits, 16-bit floats.
#include <doctest/doctest.h>
#include <levin/autograd/autocast.h>
#include <levin/autograd/gradcheck.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/ops/recurrent.h>
#include <levin/nn/nn.h>

using namespace levin;

TEST_CASE("a recurrent state that comes from the weights counts once in second derivatives") {
  manual_seed(3);
  const TensorOptions wide{.dtype = kDouble};
  const Tensor x = randn({2, 2, 9}, wide), w = randn({9, 3}, wide);
  const auto f = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    const Tensor h = tanh(in[1].narrow(0, 0, 2));
    return {recurrent_steps(RecurrentCell::gru, in[0], {h, {}, in[1], {}}).first};
  };
  CHECK(gradcheck(f, {x.requires_grad_(), w.requires_grad_()}) == "");
  CHECK(gradgradcheck(f, {x, w}) == "");
}

TEST_CASE("an in-place edit of a recurrent layer's output is found by backward") {
  nn::LSTM lstm(3, 4);
  const Tensor y = lstm(randn({5, 2, 3})).first;
  y.mul_(2);
  CHECK_THROWS_AS(sum(y).backward(), GradError);
}

TEST_CASE("recurrent layers compute in autocast's type and keep gradients in float32") {
  nn::GRU gru(3, 4);
  const Tensor x = randn({5, 2, 3});
  const Tensor expected = gru(x).first;
  Tensor y;
  {
    const autocast on(kBFloat16);
    y = gru(x).first;
  }
  CHECK(y.dtype() == kBFloat16);
  CHECK((y.to(kFloat32) - expected).abs().max().item<double>() < 0.05);
  sum(y).backward();
  for (const Parameter& p : gru.parameters()) {
    CHECK(p.grad().dtype() == kFloat32);
    CHECK(p.grad().abs().max().item<double>() > 0);
  }
}
