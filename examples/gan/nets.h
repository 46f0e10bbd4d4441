#pragma once
// The generator and the discriminator: the DCGAN of Radford et al. (2016) for images of 28 x 28, or two small
// perceptrons. With classes, the generator is told what to draw, and the discriminator has a logit for each class, as
// in the projection discriminator of Miyato and Koyama (2018).

#include <levin/levin.h>

#include <algorithm>

inline constexpr std::int64_t kNoise = 100, kClasses = 10;
inline constexpr double kMean = 0.2860, kStd = 0.3530;  // with which data::FashionMnist normalises

/// Converts FashionMnist's normalised images to [-1, 1], and back.
inline levin::Tensor to_tanh_range(const levin::Tensor& x) { return x * (2 * kStd) + (2 * kMean - 1); }
inline levin::Tensor to_normalised(const levin::Tensor& images) { return (images - (2 * kMean - 1)) / (2 * kStd); }

/// The generator maps noise and a one-hot class (B, 100 + classes, 1, 1) to images in [-1, 1] of shape (B, 1, 28, 28),
/// or (B, 784) if tiny.
inline levin::nn::Sequential make_generator(bool tiny, std::int64_t classes) {
  using namespace levin::nn;
  if (tiny)
    return Sequential(Flatten(), Linear(kNoise + classes, 128), LeakyReLU(0.2), Linear(128, 256), LeakyReLU(0.2),
                      Linear(256, 784), Tanh());
  return Sequential(ConvTranspose2d(kNoise + classes, 128, 7, {.bias = false}), BatchNorm2d(128), ReLU(),
                    ConvTranspose2d(128, 64, 4, {.stride = 2, .padding = 1, .bias = false}), BatchNorm2d(64), ReLU(),
                    ConvTranspose2d(64, 32, 4, {.stride = 2, .padding = 1, .bias = false}), BatchNorm2d(32), ReLU(),
                    Conv2d(32, 1, 3, {.padding = 1}), Tanh());
}

/// The discriminator maps images (B, 1, 28, 28) in [-1, 1] to a logit for each class (B, classes), or (B, 1) without
/// classes, which is positive for images taken as real ones of the class.
inline levin::nn::Sequential make_discriminator(bool tiny, std::int64_t classes) {
  using namespace levin::nn;
  const std::int64_t logits = std::max<std::int64_t>(classes, 1);
  if (tiny)
    return Sequential(Flatten(), Linear(784, 256), LeakyReLU(0.2), Linear(256, 128), LeakyReLU(0.2),
                      Linear(128, logits));
  return Sequential(Conv2d(1, 48, 4, {.stride = 2, .padding = 1}), LeakyReLU(0.2),
                    Conv2d(48, 96, 4, {.stride = 2, .padding = 1, .bias = false}), BatchNorm2d(96), LeakyReLU(0.2),
                    Conv2d(96, 192, 3, {.stride = 2, .padding = 1, .bias = false}), BatchNorm2d(192), LeakyReLU(0.2),
                    Flatten(), Linear(192 * 16, logits));
}

/// Draws the weights of convolutions and linear layers from N(0, 0.02), as in the DCGAN paper.
inline void init_weights(levin::nn::Module& net) {
  const levin::no_grad guard;
  for (const auto& [name, p] : net.named_parameters())
    if (p.dim() > 1) levin::nn::init::normal_(p, 0.0, 0.02);
}
