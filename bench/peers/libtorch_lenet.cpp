// LibTorch's side of tests/consumer/lenet.cpp, for ./run sizes: training steps of LeNet, on random images.
#include <torch/torch.h>

#include <cstdlib>
#include <iostream>

int main(int argc, char** argv) {
  torch::nn::Sequential net(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
      torch::nn::Conv2d(6, 16, 5), torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
      torch::nn::Linear(400, 120), torch::nn::ReLU(), torch::nn::Linear(120, 84), torch::nn::ReLU(),
      torch::nn::Linear(84, 10));
  torch::optim::AdamW opt(net->parameters(), torch::optim::AdamWOptions(2e-3));
  const auto x = torch::randn({128, 1, 28, 28});
  const auto y = torch::randint(0, 10, {128});
  for (int step = 0; step < (argc > 2 ? std::atoi(argv[2]) : 469); ++step) {
    opt.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(x), y).backward();
    opt.step();
  }
  torch::save(net, argc > 1 ? argv[1] : "lenet.pt");
  std::cout << "trained\n";
}
