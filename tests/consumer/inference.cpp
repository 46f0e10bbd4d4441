// Runs a trained LeNet on an image of noise: inference WEIGHTS. It has no training code, and prints the class.
#include "lenet.h"

#include <levin/autograd/autograd.h>
#include <levin/interop/safetensors.h>

#include <iostream>

using namespace levin;

int main(int argc, char** argv) try {
  if (argc != 2) throw ValueError("usage: inference WEIGHTS");
  LeNet net;
  net.load_state_dict(interop::load_safetensors(argv[1]).tensors);
  net.eval();
  manual_seed(2);
  const no_grad guard;
  const auto logits = net(randn({1, 1, 28, 28}));  // (1, 10)
  std::cout << "class " << argmax(logits, 1).item<std::int64_t>() << '\n';
} catch (const Error& e) {  // thrown by the library
  std::cerr << "error: " << e.what() << '\n';
  return 1;
}
