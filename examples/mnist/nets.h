#pragma once
// The four networks. Their parameters are named as in the same nn.Sequential of PyTorch.

#include <levin/levin.h>

inline levin::nn::Sequential make_net(const std::string& model) {
  using namespace levin::nn;
  if (model == "mlp")
    return Sequential(Flatten(), Linear(784, 512), ReLU(), Linear(512, 512), ReLU(), Linear(512, 10));
  if (model == "cnn")
    return Sequential(Conv2d(1, 32, 3), ReLU(), Conv2d(32, 64, 3), ReLU(), MaxPool2d(2), Flatten(), Linear(9216, 128),
                      ReLU(), Linear(128, 10));
  if (model == "fast")  // batch normalization after the pools, where there is a quarter of the values
    return Sequential(Conv2d(1, 32, 3, {.padding = 1, .bias = false}), MaxPool2d(2), BatchNorm2d(32), ReLU(),
                      Conv2d(32, 64, 3, {.padding = 1, .bias = false}), MaxPool2d(2), BatchNorm2d(64), ReLU(),
                      Flatten(), Linear(3136, 128, {.bias = false}), BatchNorm1d(128), ReLU(), Linear(128, 10));
  return Sequential(Conv2d(1, 16, 5, {.padding = 2}), ReLU(), MaxPool2d(2), Conv2d(16, 32, 5), ReLU(), MaxPool2d(2),
                    Flatten(), Linear(800, 128), ReLU(), Linear(128, 10));
}
