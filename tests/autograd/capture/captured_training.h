#pragma once
// Short trainings on the CPU whose steps can be captured.

#include "support/replayed.h"

#include <levin/autograd/autograd.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace levin::test::capturing {

/// One block of GPT over the 12 values as 4 positions of 3 features.
struct Block : nn::Module {
  nn::Linear& embed = add<nn::Linear>("embed", 3, 16);
  nn::LayerNorm& norm1 = add<nn::LayerNorm>("norm1", Shape{16});
  nn::Linear& qkv = add<nn::Linear>("qkv", 16, 48);
  nn::Linear& out = add<nn::Linear>("out", 16, 16);
  nn::LayerNorm& norm2 = add<nn::LayerNorm>("norm2", Shape{16});
  nn::Linear& up = add<nn::Linear>("up", 16, 64);
  nn::Linear& down = add<nn::Linear>("down", 64, 16);
  nn::Linear& head = add<nn::Linear>("head", 16, 5);
  Tensor forward(const Tensor& given) override {
    Tensor x = embed(given.reshape({-1, 4, 3}));  // (B, 4, 16)
    const auto parts = split(qkv(norm1(x)), 16, -1);
    const auto heads = [](const Tensor& t) { return transpose(t.reshape({-1, 4, 2, 8}), 1, 2); };  // (B, 2, 4, 8)
    const Tensor a = scaled_dot_product_attention(heads(parts[0]), heads(parts[1]), heads(parts[2]),
                                                  {.dropout_p = is_training() ? 0.1 : 0.0, .is_causal = true});
    x = x + dropout(out(transpose(a, 1, 2).reshape({-1, 4, 16})), 0.1, is_training());
    x = x + down(gelu(up(norm2(x))));
    return head(mean(x, {1}));
  }
};

/// Padded places, whose lists a capture has to copy, and an index expression.
struct Padded : nn::Module {
  nn::Conv2d& conv = add<nn::Conv2d>("conv", 1, 5, 3);
  Tensor rows = tensor({0, 1, -1}), columns = tensor({1, 0, 2});
  Tensor forward(const Tensor& given) override {
    const Tensor h = conv(pad(given, {1, 1, 1, 1}, PadMode::reflect));  // (B, 5, 4, 3)
    return sum(Tensor(h(Slice(), Slice(), rows, columns)), {2});  // (B, 5)
  }
};

using Parameters = std::vector<Parameter>;
inline std::unique_ptr<optim::Optimizer> adam(const Parameters& p) {
  return std::make_unique<optim::Adam>(p, optim::AdamOptions{.lr = 0.02, .weight_decay = 0.01, .capturable = true});
}
inline std::unique_ptr<optim::Optimizer> adamw(const Parameters& p) {
  return std::make_unique<optim::AdamW>(p, optim::AdamWOptions{.lr = 0.01, .amsgrad = true, .capturable = true});
}
inline std::unique_ptr<optim::Optimizer> sgd(const Parameters& p) {
  return std::make_unique<optim::SGD>(
      p, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .capturable = true});
}
struct Recipe {
  std::function<std::unique_ptr<nn::Module>()> net;
  std::function<std::unique_ptr<optim::Optimizer>(const Parameters&)> optimizer;
  bool scheduled = false;
};

/// A training that begins with the same weights and draws the same batches each time.
class Training {
 public:
  static constexpr int kSteps = 20, kEager = 3;

  explicit Training(Recipe r) : recipe_(std::move(r)) {
    manual_seed(1);
    net = recipe_.net();
    optimizer = recipe_.optimizer(net->parameters());
    if (recipe_.scheduled) schedule.emplace(*optimizer, kSteps);
    manual_seed(7);
  }
  void load(int batch) {
    Generator g(static_cast<std::uint64_t>(100 + batch));
    x.copy_(randn({8, 1, 4, 3}, {.generator = &g}));
    y.copy_(randint(0, 5, {8}, {.generator = &g}));
  }
  void forward_backward() {
    loss = cross_entropy(net->forward(x), y);
    loss.backward();
  }
  void step() {
    optimizer->zero_grad();
    forward_backward();
    optimizer->step();
  }
  Bits weights() const { return bits_of_weights(*net); }
  std::map<std::string, Bits> state() const { return bits_of_state(*net, *optimizer); }

 private:
  Recipe recipe_;

 public:
  std::unique_ptr<nn::Module> net;
  std::unique_ptr<optim::Optimizer> optimizer;
  std::optional<optim::CosineAnnealingLR> schedule;
  Tensor x = zeros({8, 1, 4, 3}), y = zeros({8}, {.dtype = kInt64}), loss;
};

}  // namespace levin::test::capturing
