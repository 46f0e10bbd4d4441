// Trains LeNet on Fashion-MNIST and saves its weights: lenet WEIGHTS [STEPS].
#include "lenet.h"

#include <levin/autograd/autograd.h>
#include <levin/data/data.h>
#include <levin/interop/safetensors.h>
#include <levin/optim/optim.h>

#include <cstdlib>
#include <iostream>

using namespace levin;

int main(int argc, char** argv) try {
  const std::string weights = argc > 1 ? argv[1] : "lenet.safetensors";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 469;  // an epoch of batches of 128
  manual_seed(1);
  LeNet net;
  optim::AdamW opt(net.parameters(), {.lr = 2e-3});
  data::DataLoader loader(data::FashionMnist("train"), {.batch_size = 128, .shuffle = true});
  int step = 0;
  for (const auto& [x, y] : loader) {  // x (128, 1, 28, 28), y (128)
    if (step++ == steps) break;
    const auto loss = cross_entropy(net(x), y);
    opt.zero_grad();
    loss.backward();
    opt.step();
  }
  interop::save_safetensors(weights, net.state_dict());
  const no_grad guard;
  const auto [x, y] = data::FashionMnist("test").all();  // (10000, 1, 28, 28), (10000)
  std::cout << "test accuracy " << eq(argmax(net(x), 1), y).to(kFloat32).mean().item<float>() << '\n';
} catch (const std::exception& e) {
  std::cerr << "error: " << e.what() << '\n';
  return 1;
}
