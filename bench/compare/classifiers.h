#pragma once
// The classifiers that are compared with PyTorch's in bench/peers/torch_train.py. Images are (B, 1, 28, 28).

#include <levin/nn/nn.h>

namespace levin::bench {

inline nn::Sequential make_mlp() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                        nn::Linear(512, 10));
}

inline nn::Sequential make_lenet() {
  return nn::Sequential(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(16, 32, 5),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(800, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

inline nn::Sequential make_cnn() {
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(), nn::Linear(128, 10));
}

}  // namespace levin::bench
