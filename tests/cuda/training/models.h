#pragma once
// Small networks of common families, with two training steps each.

#include <levin/autograd/autocast.h>
#include <levin/autograd/engine.h>
#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/core/generator.h>
#include <levin/nn/nn.h>
#include <levin/optim/optim.h>

#include <vector>

namespace levin::test {

/// The device of a training, and whether it runs under autocast with a GradScaler.
struct Training {
  Device device{};
  bool mixed = false;
  int steps = 2;
  int64_t batch = 4;
};

/// One optimizer's step in either precision. The scaler starts with a scale that does not overflow.
class Step {
 public:
  explicit Step(const Training& how) : how_(how), scaler_({.init_scale = 1024, .enabled = how.mixed}) {}

  /// Returns the loss, still on the device.
  template <class F>
  Tensor run(optim::Optimizer& optimizer, F&& loss_of) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const autocast scope(kHalf, how_.mixed);
      loss = loss_of();
    }
    scaler_.scale(loss).backward();
    scaler_.step(optimizer);
    scaler_.update();
    return loss.detach();
  }

 private:
  Training how_;
  GradScaler scaler_;
};

inline std::vector<double> on_host(const std::vector<Tensor>& losses) {
  std::vector<double> values;
  for (const Tensor& x : losses) values.push_back(x.item<double>());
  return values;
}

inline Tensor random_labels(int64_t classes, const Shape& sizes) { return randint(0, classes, sizes); }

/// The network of `mnist --model lenet`, AdamW.
inline std::vector<double> train_cnn(const Training& how) {
  using namespace nn;
  manual_seed(11);
  Sequential net(Conv2d(1, 16, 5, {.padding = 2}), ReLU(), MaxPool2d(2), Conv2d(16, 32, 5), ReLU(), MaxPool2d(2),
                 Flatten(), Linear(800, 128), ReLU(), Linear(128, 10));
  const Tensor x = randn({how.batch, 1, 28, 28}).to(how.device);
  const Tensor labels = random_labels(10, {how.batch}).to(how.device);
  net.to(how.device);
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  Step step(how);
  std::vector<Tensor> losses;
  for (int i = 0; i < how.steps; ++i)
    losses.push_back(step.run(optimizer, [&] { return cross_entropy(net(x), labels); }));
  return on_host(losses);
}

/// The DCGAN of Radford et al. (2016) for images of 28 x 28. Returns the losses of discriminator and generator for each
/// step.
inline std::vector<double> train_dcgan(const Training& how) {
  using namespace nn;
  manual_seed(12);
  const auto transposed = [](int64_t in, int64_t out) {
    return ConvTranspose2d(in, out, 4, {.stride = 2, .padding = 1, .bias = false});
  };
  const auto strided = [](int64_t in, int64_t out) { return Conv2d(in, out, 4, {.stride = 2, .padding = 1}); };
  Sequential generator(ConvTranspose2d(16, 16, 7, {.bias = false}), BatchNorm2d(16), ReLU(), transposed(16, 8),
                       BatchNorm2d(8), ReLU(), transposed(8, 1), Tanh());
  Sequential discriminator(strided(1, 8), LeakyReLU(0.2), strided(8, 16), BatchNorm2d(16), LeakyReLU(0.2),
                           Conv2d(16, 1, 7), Flatten());
  const Tensor real = rand({how.batch, 1, 28, 28}).to(how.device);
  std::vector<Tensor> noise;
  for (int i = 0; i < how.steps; ++i) noise.push_back(randn({how.batch, 16, 1, 1}).to(how.device));
  generator.to(how.device);
  discriminator.to(how.device);
  const optim::AdamOptions options{.lr = 2e-4, .betas = {0.5, 0.999}};
  optim::Adam of_generator(generator.parameters(), options), of_discriminator(discriminator.parameters(), options);
  Step judge(how), forge(how);
  std::vector<Tensor> losses;
  for (int i = 0; i < how.steps; ++i) {
    Tensor fake;
    losses.push_back(judge.run(of_discriminator, [&] {
      fake = generator(noise[static_cast<std::size_t>(i)]);
      return bce_with_logits(discriminator(real), 1.0) + bce_with_logits(discriminator(fake.detach()), 0.0);
    }));
    losses.push_back(forge.run(of_generator, [&] { return bce_with_logits(discriminator(fake), 1.0); }));
  }
  return on_host(losses);
}

/// A pre-norm transformer block with causal attention over two heads.
struct GptBlock : nn::Module {
  explicit GptBlock(int64_t width)
      : norm1(add<nn::LayerNorm>("norm1", width)),
        qkv(add<nn::Linear>("qkv", width, 3 * width)),
        out(add<nn::Linear>("out", width, width)),
        norm2(add<nn::LayerNorm>("norm2", width)),
        up(add<nn::Linear>("up", width, 4 * width)),
        down(add<nn::Linear>("down", 4 * width, width)) {}

  Tensor forward(const Tensor& x) override {
    const int64_t batch = x.size(0), length = x.size(1), width = x.size(2), heads = 2;
    const Tensor parts = qkv(norm1(x)).reshape({batch, length, 3, heads, width / heads});
    const auto part = [&](int64_t i) { return parts.select(2, i).transpose(1, 2); };  // (B, heads, T, width / heads)
    const Tensor mixed = scaled_dot_product_attention(part(0), part(1), part(2), {.is_causal = true});
    const Tensor y = x + out(mixed.transpose(1, 2).reshape({batch, length, width}));
    return y + down(gelu(up(norm2(y))));
  }
  nn::LayerNorm& norm1;
  nn::Linear &qkv, &out;
  nn::LayerNorm& norm2;
  nn::Linear &up, &down;
};

struct Gpt : nn::Module {
  static constexpr int64_t kTokens = 40, kLength = 16, kWidth = 32;
  Gpt()
      : tokens(add<nn::Embedding>("tokens", kTokens, kWidth)),
        places(add<nn::Embedding>("places", kLength, kWidth)),
        first(add<GptBlock>("first", kWidth)),
        second(add<GptBlock>("second", kWidth)),
        norm(add<nn::LayerNorm>("norm", kWidth)),
        head(add<nn::Linear>("head", kWidth, kTokens)) {}

  Tensor forward(const Tensor& text) override {  // (B, T) to (B, T, tokens)
    const Tensor at = arange(text.size(1)).to(text.device());
    return head(norm(second(first(tokens(text) + places(at)))));
  }
  nn::Embedding &tokens, &places;
  GptBlock &first, &second;
  nn::LayerNorm& norm;
  nn::Linear& head;
};

inline std::vector<double> train_gpt(const Training& how) {
  manual_seed(13);
  Gpt net;
  const Tensor text = random_labels(Gpt::kTokens, {how.batch, Gpt::kLength + 1}).to(how.device);
  const Tensor given = text.narrow(1, 0, Gpt::kLength), next = text.narrow(1, 1, Gpt::kLength).reshape({-1});
  net.to(how.device);
  optim::AdamW optimizer(net.parameters(), {.lr = 1e-3});
  Step step(how);
  std::vector<Tensor> losses;
  for (int i = 0; i < how.steps; ++i)
    losses.push_back(step.run(optimizer, [&] { return cross_entropy(net(given).reshape({-1, Gpt::kTokens}), next); }));
  return on_host(losses);
}

}  // namespace levin::test
