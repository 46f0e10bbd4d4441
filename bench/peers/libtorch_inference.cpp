// LibTorch's side of tests/consumer/inference.cpp, for ./run sizes: one image through LeNet. Without a file it has
// random weights.
#include <torch/torch.h>

#include <iostream>

int main(int argc, char** argv) {
  torch::NoGradGuard guard;
  torch::nn::Sequential net(
      torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 6, 5).padding(2)), torch::nn::ReLU(), torch::nn::MaxPool2d(2),
      torch::nn::Conv2d(6, 16, 5), torch::nn::ReLU(), torch::nn::MaxPool2d(2), torch::nn::Flatten(),
      torch::nn::Linear(400, 120), torch::nn::ReLU(), torch::nn::Linear(120, 84), torch::nn::ReLU(),
      torch::nn::Linear(84, 10));
  if (argc > 1) torch::load(net, argv[1]);
  net->eval();
  std::cout << "class " << net->forward(torch::randn({1, 1, 28, 28})).argmax(1).item<int64_t>() << '\n';
}
