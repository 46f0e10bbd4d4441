// LibTorch's side of examples/minimal, for ./run sizes: linear regression with tensors and gradients.
#include <torch/torch.h>

#include <iostream>

int main() {
  const auto x = torch::randn({64, 3});
  const auto y = torch::matmul(x, torch::full({3, 1}, 2.0));
  auto w = torch::zeros({3, 1}, torch::requires_grad());
  for (int step = 0; step < 100; ++step) {
    const auto loss = (torch::matmul(x, w) - y).square().mean();
    w.mutable_grad().reset();
    loss.backward();
    torch::NoGradGuard guard;
    w -= w.grad() * 0.1;
  }
  std::cout << "learned weights:\n" << w.detach() << '\n';
}
