#pragma once
// The network that both programs know. Its parameters are named as those of `./run mnist`.

#include <levin/nn/nn.h>

inline levin::nn::Sequential lenet() {
  using namespace levin::nn;
  return Sequential(Conv2d(1, 16, 5, {.padding = 2}), ReLU(), MaxPool2d(2), Conv2d(16, 32, 5), ReLU(), MaxPool2d(2),
                    Flatten(), Linear(800, 128), ReLU(), Linear(128, 10));
}
