#pragma once
// Networks whose steps are captured and replayed, and their state as bits.

#include <levin/autograd/ops.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace levin::test {

using Bits = std::vector<std::uint64_t>;

inline Bits bits(const Tensor& t) {
  Bits result;
  for (const double v : t.detach().to_vector<double>()) result.push_back(std::bit_cast<std::uint64_t>(v));
  return result;
}

inline Bits bits_of_weights(const nn::Module& net) {
  Bits all;
  for (const Parameter& p : net.parameters()) {
    const Bits one = bits(p);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

inline std::map<std::string, Bits> bits_of_state(const nn::Module& net, const optim::Optimizer& optimizer) {
  std::map<std::string, Bits> all;
  for (const auto& [name, t] : net.state_dict()) all[name] = bits(t);
  for (const auto& [name, t] : optimizer.state_dict()) all[name] = bits(t);
  return all;
}

struct Mlp : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 12, 24);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 24, 5);
  Tensor forward(const Tensor& x) override { return fc2(dropout(relu(fc1(flatten(x, 1))), 0.4, is_training())); }
};

struct Cnn : nn::Module {
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", 1, 4, 3, nn::Conv2d::Options{.padding = 1});
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 4);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", 4, 6, 2);
  nn::Linear& fc = add<nn::Linear>("fc", 12, 5);
  Tensor forward(const Tensor& x) override {
    const Tensor h = relu(norm(conv1(x)));                        // (B, 4, 4, 3)
    const Tensor k = max_pool2d(relu(conv2(h)), Tuple<2>{2, 1});  // (B, 6, 1, 2)
    return fc(dropout(flatten(k, 1), 0.2, is_training()));
  }
};

template <class Net>
std::unique_ptr<nn::Module> make() {
  return std::make_unique<Net>();
}

}  // namespace levin::test
