#pragma once
// Model parallelism by hand: the encoder lies on one device and the decoder on another.

#include <levin/levin.h>

#include <optional>

/// Encodes images as 32 numbers and decodes them.
struct Autoencoder : levin::nn::Module {
  using Devices = std::vector<levin::Device>;
  levin::nn::Sequential& encoder = add<levin::nn::Sequential>(
      "encoder", levin::nn::Flatten(), levin::nn::Linear(784, 128), levin::nn::ReLU(), levin::nn::Linear(128, 32));
  levin::nn::Sequential& decoder =
      add<levin::nn::Sequential>("decoder", levin::nn::Linear(32, 128), levin::nn::ReLU(), levin::nn::Linear(128, 784));

  /// Places the encoder and the decoder. A half with several devices splits its batch over them; its parameters lie on
  /// the first.
  void place(const Devices& of_encoder, const Devices& of_decoder) {
    encoder.to(of_encoder.at(0));
    decoder.to(of_decoder.at(0));
    encode.emplace(encoder, of_encoder);
    decode.emplace(decoder, of_decoder);
  }

  /// Maps x (B, 1, 28, 28) on any device to (B, 1, 28, 28) on the decoder's device. Gradients flow back the same way.
  levin::Tensor forward(const levin::Tensor& x) override {
    const levin::Tensor code = (*encode)(x.to(encoder.device()));    // (B, 32), on the encoder's device
    return (*decode)(code.to(decoder.device())).reshape(x.sizes());  // on the decoder's
  }

  std::optional<levin::distributed::DataParallel> encode, decode;
};
