// The smallest program: linear regression with tensors and gradients, from the tensor library alone.
#include <levin/autograd/autograd.h>

#include <iostream>

int main() {
  using namespace levin;
  manual_seed(0);
  const auto x = randn({64, 3});                  // (64, 3)
  const auto y = matmul(x, full({3, 1}, 2.0));    // (64, 1), the targets: every weight is 2
  const auto w = zeros({3, 1}).requires_grad_();  // (3, 1)
  for (int step = 0; step < 100; ++step) {
    const auto loss = square(matmul(x, w) - y).mean();
    w.set_grad({});
    loss.backward();
    const no_grad guard;
    w -= w.grad() * 0.1;
  }
  std::cout << "learned weights:\n" << w.detach() << '\n';
  const double error = (w.detach() - 2.0).abs().max().item<double>();
  std::cout << "result: max_error=" << error << '\n';
  return error < 1e-3 ? 0 : 1;
}
