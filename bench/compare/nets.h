#pragma once
// The nets that are compared with PyTorch's, with the parameter names of bench/peers/torch_nets.py.

#include <levin/nn/nn.h>

namespace levin::bench {

/// (B, 1, 28, 28) to (B, 10).
inline nn::Sequential make_mlp() {
  return nn::Sequential(nn::Flatten(), nn::Linear(784, 512), nn::ReLU(), nn::Linear(512, 512), nn::ReLU(),
                        nn::Linear(512, 10));
}

/// (B, 1, 28, 28) to (B, 10).
inline nn::Sequential make_lenet() {
  return nn::Sequential(nn::Conv2d(1, 16, 5, {.padding = 2}), nn::ReLU(), nn::MaxPool2d(2), nn::Conv2d(16, 32, 5),
                        nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(800, 128), nn::ReLU(),
                        nn::Linear(128, 10));
}

/// (B, 1, 28, 28) to (B, 10).
inline nn::Sequential make_cnn() {
  return nn::Sequential(nn::Conv2d(1, 32, 3), nn::ReLU(), nn::Conv2d(32, 64, 3), nn::ReLU(), nn::MaxPool2d(2),
                        nn::Flatten(), nn::Linear(9216, 128), nn::ReLU(), nn::Linear(128, 10));
}

/// (B, 100, 1, 1) to (B, 1, 28, 28).
inline nn::Sequential make_generator() {
  return nn::Sequential(nn::ConvTranspose2d(100, 256, 7, {.bias = false}), nn::BatchNorm2d(256), nn::ReLU(),
                        nn::ConvTranspose2d(256, 128, 4, {.stride = 2, .padding = 1, .bias = false}),
                        nn::BatchNorm2d(128), nn::ReLU(), nn::ConvTranspose2d(128, 1, 4, {.stride = 2, .padding = 1}),
                        nn::Tanh());
}

/// (B, 1, 28, 28) to (B, 1).
inline nn::Sequential make_discriminator() {
  return nn::Sequential(nn::Conv2d(1, 64, 4, {.stride = 2, .padding = 1}), nn::LeakyReLU(0.2),
                        nn::Conv2d(64, 128, 4, {.stride = 2, .padding = 1, .bias = false}), nn::BatchNorm2d(128),
                        nn::LeakyReLU(0.2), nn::Flatten(), nn::Linear(128 * 49, 1));
}

struct ResidualBlock : nn::Module {
  ResidualBlock(int64_t inputs_, int64_t outputs_, int64_t stride_)
      : inputs(inputs_), outputs(outputs_), stride(stride_) {}
  const int64_t inputs, outputs, stride;
  nn::Conv2d& conv1 = add<nn::Conv2d>("conv1", inputs, outputs, 3, {.stride = stride, .padding = 1, .bias = false});
  nn::BatchNorm2d& bn1 = add<nn::BatchNorm2d>("bn1", outputs);
  nn::Conv2d& conv2 = add<nn::Conv2d>("conv2", outputs, outputs, 3, {.padding = 1, .bias = false});
  nn::BatchNorm2d& bn2 = add<nn::BatchNorm2d>("bn2", outputs);
  nn::Sequential* shortcut =
      inputs == outputs && stride == 1
          ? nullptr
          : &add<nn::Sequential>("shortcut", nn::Conv2d(inputs, outputs, 1, {.stride = stride, .bias = false}),
                                 nn::BatchNorm2d(outputs));

  Tensor forward(const Tensor& x) override {  // (B, inputs, H, W) to (B, outputs, H / stride, W / stride)
    const Tensor y = bn2(conv2(relu(bn1(conv1(x)))));
    return relu(y + (shortcut ? (*shortcut)(x) : x));
  }
};

/// ResNet-18 for small images: its first convolution keeps the size. (B, 3, 32, 32) to (B, 10).
inline nn::Sequential make_resnet18() {
  using Block = ResidualBlock;
  return nn::Sequential(nn::Conv2d(3, 64, 3, {.padding = 1, .bias = false}), nn::BatchNorm2d(64), nn::ReLU(),
                        Block(64, 64, 1), Block(64, 64, 1), Block(64, 128, 2), Block(128, 128, 1), Block(128, 256, 2),
                        Block(256, 256, 1), Block(256, 512, 2), Block(512, 512, 1), nn::AdaptiveAvgPool2d(1),
                        nn::Flatten(), nn::Linear(512, 10));
}

/// A transformer's block with the norms in front.
struct AttentionBlock : nn::Module {
  AttentionBlock(int64_t width, int64_t heads_, bool causal_) : channels(width), heads(heads_), causal(causal_) {}
  const int64_t channels, heads;
  const bool causal;
  nn::LayerNorm& l1 = add<nn::LayerNorm>("l1", channels);
  nn::LayerNorm& l2 = add<nn::LayerNorm>("l2", channels);
  nn::Linear& qkv = add<nn::Linear>("qkv", channels, 3 * channels);
  nn::Linear& o = add<nn::Linear>("o", channels, channels);
  nn::Sequential& m =
      add<nn::Sequential>("m", nn::Linear(channels, 4 * channels), nn::GELU(), nn::Linear(4 * channels, channels));

  Tensor forward(const Tensor& x) override {  // (B, T, channels)
    const int64_t batch = x.size(0), length = x.size(1);
    const auto parts = qkv(l1(x)).view({batch, length, 3, heads, channels / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    // (B, heads, T, channels / heads)
    const Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], {.is_causal = causal});
    const Tensor h = x + o(y.transpose(1, 2).reshape({batch, length, channels}));
    return h + m(l2(h));
  }
};

/// A language model of bytes: (B, T) to (B, T, 256), with T up to 128.
struct Gpt : nn::Module {
  using Block = AttentionBlock;
  nn::Embedding& te = add<nn::Embedding>("te", 256, 192);
  nn::Embedding& pe = add<nn::Embedding>("pe", 128, 192);
  nn::Sequential& b =
      add<nn::Sequential>("b", Block(192, 6, true), Block(192, 6, true), Block(192, 6, true), Block(192, 6, true));
  nn::LayerNorm& n = add<nn::LayerNorm>("n", 192);
  nn::Linear& h = add<nn::Linear>("h", 192, 256, nn::LinearOptions{.bias = false});

  Tensor forward(const Tensor& i) override { return h(n(b(te(i) + pe(arange(i.size(1)))))); }
};

/// ViT-Ti for small images, with patches of 4 x 4 and the mean of their features: (B, 3, 32, 32) to (B, 10).
struct Vit : nn::Module {
  nn::Conv2d& embedding = add<nn::Conv2d>("embedding", 3, 192, 4, {.stride = 4});
  Parameter& positions = register_parameter("positions", zeros({1, 64, 192}));
  nn::ModuleList<AttentionBlock>& b = add<nn::ModuleList<AttentionBlock>>("b");
  nn::LayerNorm& n = add<nn::LayerNorm>("n", 192);
  nn::Linear& h = add<nn::Linear>("h", 192, 10);

  Vit() {
    for (int layer = 0; layer < 12; ++layer) b.append(192, 3, false);
  }
  Tensor forward(const Tensor& x) override {
    Tensor y = embedding(x).flatten(2).transpose(1, 2) + positions;  // (B, 64, 192)
    for (AttentionBlock& block : b) y = block(y);
    return h(n(y).mean({1}));
  }
};

/// A language model of bytes with two recurrent layers: (B, T) to (B, T, 256).
struct Recurrent : nn::Module {
  nn::Embedding& e = add<nn::Embedding>("e", 256, 256);
  nn::LSTM& r = add<nn::LSTM>("r", 256, 256, {.num_layers = 2, .batch_first = true});
  nn::Linear& h = add<nn::Linear>("h", 256, 256);

  Tensor forward(const Tensor& i) override { return h(r(e(i)).first); }
};

}  // namespace levin::bench
