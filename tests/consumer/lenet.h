#pragma once
// LeNet, as trained by lenet.cpp and run by inference.cpp.

#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>

struct LeNet : levin::nn::Module {
  levin::nn::Conv2d& conv1 = add<levin::nn::Conv2d>("conv1", 1, 6, 5, levin::nn::Conv2dOptions{.padding = 2});
  levin::nn::Conv2d& conv2 = add<levin::nn::Conv2d>("conv2", 6, 16, 5);
  levin::nn::Linear& fc1 = add<levin::nn::Linear>("fc1", 400, 120);
  levin::nn::Linear& fc2 = add<levin::nn::Linear>("fc2", 120, 84);
  levin::nn::Linear& fc3 = add<levin::nn::Linear>("fc3", 84, 10);

  /// x (B, 1, 28, 28); returns logits (B, 10).
  levin::Tensor forward(const levin::Tensor& x) {
    auto y = max_pool2d(relu(conv1(x)), 2);         // (B, 6, 14, 14)
    y = flatten(max_pool2d(relu(conv2(y)), 2), 1);  // (B, 400)
    return fc3(relu(fc2(relu(fc1(y)))));
  }
};
