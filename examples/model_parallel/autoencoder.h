#pragma once
// Layers on different devices by hand: an encoder on one, a decoder on another.

#include <levin/levin.h>

#include <optional>

/// Pictures to 32 numbers and back.
struct Autoencoder : levin::nn::Module {
  using Devices = std::vector<levin::Device>;
  levin::nn::Sequential& encoder = add<levin::nn::Sequential>(
      "encoder", levin::nn::Flatten(), levin::nn::Linear(784, 128), levin::nn::ReLU(), levin::nn::Linear(128, 32));
  levin::nn::Sequential& decoder =
      add<levin::nn::Sequential>("decoder", levin::nn::Linear(32, 128), levin::nn::ReLU(), levin::nn::Linear(128, 784));

  /// Either half goes to a device of its own; with several it is cut along the batch and lies on the first.
  void place(const Devices& of_encoder, const Devices& of_decoder) {
    encoder.to(of_encoder.at(0));
    decoder.to(of_decoder.at(0));
    encode.emplace(encoder, of_encoder);
    decode.emplace(decoder, of_decoder);
  }

  /// x (B, 1, 28, 28), anywhere, to (B, 1, 28, 28) on the decoder's device. Gradients come back the same way.
  levin::Tensor forward(const levin::Tensor& x) override {
    const levin::Tensor code = (*encode)(x.to(encoder.device()));    // (B, 32), on the encoder's device
    return (*decode)(code.to(decoder.device())).reshape(x.sizes());  // on the decoder's
  }

  std::optional<levin::distributed::DataParallel> encode, decode;
};
