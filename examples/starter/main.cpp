// Learns which of two interleaved spirals a point belongs to, and saves the weights: starter [FILE]. Replace the data
// and the network by your own.
#include <levin/levin.h>

#include <cmath>
#include <iostream>
#include <numbers>
#include <utility>

using namespace levin;

namespace {

/// Returns `count` points (count, 2) and the spiral (count) that each is on, 0 or 1.
std::pair<Tensor, Tensor> spirals(std::int64_t count) {
  const auto label = randint(0, 2, {count});
  const auto turn = rand({count}) * 2.0 + 0.25;  // how far along the spiral
  const auto angle = turn * std::numbers::pi + label.to(kFloat32) * std::numbers::pi;
  const auto x = stack({turn * cos(angle), turn * sin(angle)}, 1);  // (count, 2)
  return {x + randn({count, 2}) * 0.03, label};
}

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 2, 64);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 64, 64);
  nn::Linear& fc3 = add<nn::Linear>("fc3", 64, 2);
  /// x (B, 2); returns logits (B, 2).
  Tensor forward(const Tensor& x) override { return fc3(relu(fc2(relu(fc1(x))))); }
};

}  // namespace

int main(int argc, char** argv) {
  manual_seed(1);
  Net net;
  optim::AdamW optimizer(net.parameters(), {.lr = 5e-3});
  const auto [points, labels] = spirals(4096);
  data::DataLoader loader(data::TensorDataset({points, labels}), {.batch_size = 128, .shuffle = true});

  for (int epoch = 0; epoch < 10; ++epoch) {
    double sum = 0;
    for (const auto& [x, y] : loader) {  // x (128, 2), y (128)
      const auto loss = cross_entropy(net(x), y);
      optimizer.zero_grad();
      loss.backward();
      optimizer.step();
      sum += loss.item<float>();
    }
    std::cout << "epoch " << epoch + 1 << ": loss " << sum / static_cast<double>(loader.size()) << '\n';
  }

  const no_grad guard;
  const auto [x, y] = spirals(2000);
  const double test = accuracy(net(x), y).item<float>();
  if (argc > 1) interop::save_safetensors(argv[1], net.state_dict());
  std::cout << "result: test_accuracy=" << test << '\n';
  return test > 0.95 ? 0 : 1;
}
