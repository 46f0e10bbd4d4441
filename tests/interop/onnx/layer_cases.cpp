// One case for each layer that ONNX has.

#include "cases.h"

#include <levin/autograd/ops.h>

#include <type_traits>

namespace levin::test {

namespace {

using Make = std::function<std::unique_ptr<nn::Module>()>;
using Inputs = std::function<std::vector<Tensor>(int64_t)>;

/// Normal numbers of shape (batch, sizes...).
Inputs normal(const Shape& sizes) {
  return [sizes](int64_t batch) -> std::vector<Tensor> {
    Shape all{batch};
    for (const int64_t n : sizes) all.push_back(n);
    return {randn(all)};
  };
}

Inputs whole(int64_t high, const Shape& sizes) {
  return [=](int64_t batch) -> std::vector<Tensor> {
    Shape all{batch};
    for (const int64_t n : sizes) all.push_back(n);
    return {randint(0, high, all)};
  };
}

/// Running statistics and weights of a trained norm.
std::unique_ptr<nn::Module> trained(std::unique_ptr<nn::Module> m) {
  no_grad guard;
  for (const auto& [name, t] : m->named_parameters()) t.add_(rand(t.sizes(), like(t)));
  for (const auto& [name, t] : m->named_buffers())
    if (t.is_floating()) t.add_(rand(t.sizes(), like(t)));
  return m;
}

std::vector<OnnxCase> all_cases() {
  std::vector<OnnxCase> cases;
  const auto add = [&](const char* name, Make make, Inputs inputs) -> OnnxCase& {
    cases.push_back({name, [make] { return trained(make()); }, std::move(inputs)});
    return cases.back();
  };
#define LAYER(inputs, Class, ...)                                                                                      \
  add(                                                                                                                 \
      #Class, []() -> std::unique_ptr<nn::Module> { return std::unique_ptr<nn::Module>(new nn::Class(__VA_ARGS__)); }, \
      inputs)
#define LAYER_OF(Class, ...) \
  []() -> std::unique_ptr<nn::Module> { return std::unique_ptr<nn::Module>(new nn::Class(__VA_ARGS__)); }
  LAYER(normal({6}), Linear, 6, 4);
  add("Linear of sequences", LAYER_OF(Linear, 6, 4), normal({3, 6}));
  add("Linear without bias", LAYER_OF(Linear, 6, 4, nn::LinearOptions{.bias = false}), normal({6}));
  LAYER(normal({2, 3, 4}), Flatten);
  LAYER(normal({5}), Identity);
  LAYER(normal({5}), Dropout);
  LAYER(normal({5, 2}), FeatureDropout);
  LAYER(normal({5, 2}), Dropout1d);
  LAYER(normal({5, 2, 3}), Dropout2d);
  LAYER(normal({5, 2, 3, 2}), Dropout3d);
  LAYER(normal({5}), AlphaDropout);
  LAYER(normal({5, 2}), FeatureAlphaDropout);
  LAYER(whole(7, {3}), Embedding, 7, 4);
  LAYER(whole(7, {3}), EmbeddingBag, 7, 4);
  add("EmbeddingBag with padding",
      LAYER_OF(EmbeddingBag, 7, 4, nn::EmbeddingBagOptions{.mode = nn::BagMode::sum, .padding_idx = 0}), whole(7, {3}));
  LAYER(normal({12}), Unflatten, 1, Shape{3, 4});
  add("Bilinear", LAYER_OF(Bilinear, 3, 4, 5), [](int64_t b) -> std::vector<Tensor> {
    return {randn({b, 3}), randn({b, 4})};
  });
  LAYER(normal({4, 3}), L2Norm, 4);
  add("PositionalEncoding",
      LAYER_OF(PositionalEncoding, 6, nn::PositionalEncodingOptions{.max_len = 9, .batch_first = true}),
      normal({5, 6}));

  // Activations
  LAYER(normal({9}), ReLU);
  LAYER(normal({9}), ReLU6);
  LAYER(normal({9}), SELU);
  LAYER(normal({9}), SiLU);
  LAYER(normal({9}), Mish);
  LAYER(normal({9}), Hardswish);
  LAYER(normal({9}), Hardsigmoid);
  LAYER(normal({9}), Softsign);
  LAYER(normal({9}), Tanhshrink);
  LAYER(normal({9}), LogSigmoid);
  LAYER(normal({9}), Tanh);
  LAYER(normal({9}), Sigmoid);
  LAYER(normal({9}), LeakyReLU, 0.2);
  LAYER(normal({9}), ELU, 0.5);
  LAYER(normal({9}), CELU, 1.5);
  LAYER(normal({9}), Softshrink);
  LAYER(normal({9}), Hardshrink);
  LAYER(normal({8}), GLU);
  LAYER(normal({9}), Softmax, 1);
  LAYER(normal({9}), LogSoftmax, -1);
  LAYER(normal({9}), Softmin, 1);
  LAYER(normal({9}), Softplus, 2.0, 20.0);
  LAYER(normal({9}), Hardtanh);
  LAYER(normal({9}), Threshold, 0.1, 20.0);
  LAYER(normal({9}), GELU);
  add("GELU by tanh", LAYER_OF(GELU, Approximate::tanh), normal({9}));
  LAYER(normal({3, 2, 2}), Softmax2d);
  LAYER(normal({3, 2}), PReLU, 3);
  LAYER(normal({9}), RReLU);

  // Convolution and pooling
  LAYER(normal({4, 9}), Conv1d, 4, 6, 3, nn::Conv1dOptions{.stride = 2, .padding = 1, .groups = 2});
  LAYER(normal({3, 8, 7}), Conv2d, 3, 4, {3, 2}, nn::Conv2dOptions{.padding = {1, 0}, .dilation = {2, 1}});
  add("Conv2d same", LAYER_OF(Conv2d, 3, 4, 4, nn::Conv2dOptions{.padding_mode = PadMode::reflect, .same = true}),
      normal({3, 8, 7}));
  LAYER(normal({2, 4, 5, 6}), Conv3d, 2, 3, 2, nn::Conv3dOptions{.padding = 1});
  LAYER(normal({4, 5}), ConvTranspose1d, 4, 6, 3,
        nn::ConvTranspose1dOptions{.stride = 2, .padding = 1, .output_padding = 1});
  LAYER(normal({4, 5, 4}), ConvTranspose2d, 4, 6, {3, 2}, nn::ConvTranspose2dOptions{.stride = 2, .groups = 2});
  LAYER(normal({2, 3, 4, 3}), ConvTranspose3d, 2, 3, 2, nn::ConvTranspose3dOptions{.stride = 2});
  LAYER(normal({3, 9}), MaxPool1d, 2);
  LAYER(normal({3, 8, 9}), MaxPool2d, 3, MaxPool2dOptions{.stride = 2, .padding = 1, .ceil_mode = true});
  LAYER(normal({3, 4, 5, 6}), MaxPool3d, 2);
  LAYER(normal({3, 9}), AvgPool1d, 3, AvgPool1dOptions{.padding = 1});
  LAYER(normal({3, 8, 9}), AvgPool2d, 3, AvgPool2dOptions{.stride = 2, .padding = 1, .count_include_pad = false});
  LAYER(normal({3, 4, 5, 6}), AvgPool3d, 2);
  add("LPPool1d", LAYER_OF(LPPool1d, 3.0, 2), [](int64_t b) -> std::vector<Tensor> { return {rand({b, 3, 8})}; });
  add("LPPool2d", LAYER_OF(LPPool2d, 2.0, 2), normal({3, 4, 6}));
  add("LPPool3d", LAYER_OF(LPPool3d, 2.0, 2), normal({3, 4, 6, 2}));
  LAYER(normal({3, 9}), AdaptiveAvgPool1d, 1);
  LAYER(normal({3, 5, 7}), AdaptiveAvgPool2d, {2, 3});
  LAYER(normal({3, 5, 4, 4}), AdaptiveAvgPool3d, {2, 2, 1});
  LAYER(normal({3, 9}), AdaptiveMaxPool1d, 4);
  LAYER(normal({3, 5, 7}), AdaptiveMaxPool2d, 1);
  LAYER(normal({3, 5, 4, 4}), AdaptiveMaxPool3d, {2, 2, 1});

  // Normalization
  LAYER(normal({4, 3}), BatchNorm, 4);
  LAYER(normal({4}), BatchNorm1d, 4);
  add("BatchNorm2d", LAYER_OF(BatchNorm2d, 4, nn::BatchNormOptions{.affine = false}), normal({4, 3, 2}));
  LAYER(normal({4, 3, 2, 2}), BatchNorm3d, 4);
  LAYER(normal({3, 6}), LayerNorm, 6);
  add("LayerNorm of two axes", LAYER_OF(LayerNorm, Shape{3, 6}, nn::LayerNormOptions{.elementwise_affine = false}),
      normal({3, 6}));
  LAYER(normal({3, 6}), RMSNorm, 6);
  LAYER(normal({6, 5}), GroupNorm, 3, 6);
  LAYER(normal({4, 9}), InstanceNorm, 4);
  LAYER(normal({4, 9}), InstanceNorm1d, 4);
  LAYER(normal({4, 5, 4}), InstanceNorm2d, 4, nn::InstanceNormOptions{.affine = true});
  LAYER(normal({4, 3, 4, 2}), InstanceNorm3d, 4);
  LAYER(normal({6, 5, 2}), LocalResponseNorm, 3);
  add("LocalResponseNorm of lines", LAYER_OF(LocalResponseNorm, 3), normal({6, 5}));
  add("LocalResponseNorm of even size", LAYER_OF(LocalResponseNorm, 4), normal({6, 5}));

  // Padding, resizing and rearranging
  LAYER(normal({2, 5}), ZeroPad1d, 2);
  LAYER(normal({2, 5, 4}), ZeroPad2d, {1, 2, 0, 1});
  LAYER(normal({2, 5, 4, 3}), ZeroPad3d, 1);
  LAYER(normal({2, 5}), ConstantPad1d, {1, 2}, 0.5);
  LAYER(normal({2, 5, 4}), ConstantPad2d, 1, 0.5);
  LAYER(normal({2, 5, 4, 3}), ConstantPad3d, 1, 0.5);
  LAYER(normal({2, 5}), ReflectionPad1d, 2);
  LAYER(normal({2, 5, 4}), ReflectionPad2d, 1);
  LAYER(normal({2, 5, 4, 3}), ReflectionPad3d, 1);
  LAYER(normal({2, 5}), ReplicationPad1d, 2);
  LAYER(normal({2, 5, 4}), ReplicationPad2d, 1);
  LAYER(normal({2, 5, 4, 3}), ReplicationPad3d, 1);
  LAYER(normal({2, 5}), CircularPad1d, 2);
  LAYER(normal({2, 5, 4}), CircularPad2d, 1);
  LAYER(normal({2, 5, 4, 3}), CircularPad3d, 1);
  LAYER(normal({2, 5}), Pad, Shape{1, -2});
  add("Upsample nearest", LAYER_OF(Upsample, InterpolateOptions{.size = {7, 9}}), normal({2, 5, 4}));
  add("Upsample by a factor", LAYER_OF(Upsample, InterpolateOptions{.scale_factor = {2.0}}), normal({2, 5, 4}));
  add("Upsample linear", LAYER_OF(Upsample, InterpolateOptions{.size = {12}, .mode = ResizeMode::linear}),
      normal({2, 5}));
  add("Upsample bicubic", LAYER_OF(Upsample, InterpolateOptions{.size = {7, 6}, .mode = ResizeMode::bicubic}),
      normal({2, 5, 4}))
      .tolerance = 32;
  add("UpsamplingNearest2d", LAYER_OF(UpsamplingNearest2d, InterpolateOptions{.scale_factor = {2.0}}),
      normal({2, 3, 4}));
  add("UpsamplingBilinear2d", LAYER_OF(UpsamplingBilinear2d, InterpolateOptions{.size = {6, 8}}), normal({2, 3, 4}));
  LAYER(normal({8, 2, 3}), PixelShuffle, 2);
  LAYER(normal({2, 4, 6}), PixelUnshuffle, 2);
  LAYER(normal({6, 2, 2}), ChannelShuffle, 3);
  LAYER(normal({2, 5, 4}), Unfold, 2);
  add("Fold", LAYER_OF(Fold, {4, 5}, 2), normal({8, 12}));

  // Recurrent layers and attention
  const auto sequences = [](int64_t b) -> std::vector<Tensor> { return {randn({b, 4, 3})}; };
  add("RNN", LAYER_OF(RNN, 3, 5, nn::RNNOptions{.nonlinearity = nn::RecurrentNonlinearity::relu, .batch_first = true}),
      sequences);
  add("GRU", LAYER_OF(GRU, 3, 5, nn::RecurrentOptions{.num_layers = 2, .batch_first = true}), sequences);
  add("LSTM", LAYER_OF(LSTM, 3, 5, nn::RecurrentOptions{.num_layers = 2, .batch_first = true, .bidirectional = true}),
      sequences);
  add("LSTM in time order", LAYER_OF(LSTM, 3, 5, nn::RecurrentOptions{.bias = false}),
      [](int64_t b) -> std::vector<Tensor> {
        return {randn({4, b, 3})};
      })
      .batch_axes = {1};
  LAYER(normal({3}), RNNCell, 3, 5);
  LAYER(normal({3}), GRUCell, 3, 5);
  LAYER(normal({3}), LSTMCell, 3, 5);
  add("MultiheadAttention", LAYER_OF(MultiheadAttention, 8, 2, nn::MultiheadAttentionOptions{.batch_first = true}),
      [](int64_t b) -> std::vector<Tensor> {
        return {randn({b, 3, 8}), randn({b, 4, 8}), randn({b, 4, 8})};
      });
  const nn::TransformerLayerOptions small{.dim_feedforward = 12, .batch_first = true};
  add(
      "TransformerEncoderLayer", [small] { return std::make_unique<nn::TransformerEncoderLayer>(8, 2, small); },
      normal({3, 8}));
  add(
      "TransformerDecoderLayer", [small] { return std::make_unique<nn::TransformerDecoderLayer>(8, 2, small); },
      [](int64_t b) -> std::vector<Tensor> {
        return {randn({b, 3, 8}), randn({b, 4, 8})};
      });
  add(
      "TransformerEncoder", [small] { return std::make_unique<nn::TransformerEncoder>(8, 2, 2, small, true); },
      normal({3, 8}))
      .tolerance = 32;
  add(
      "TransformerDecoder",
      [small] { return std::make_unique<nn::TransformerDecoder>(8, 2, 1, small, true); },
      [](int64_t b) -> std::vector<Tensor> {
        return {randn({b, 3, 8}), randn({b, 4, 8})};
      })
      .tolerance = 32;
  add(
      "Transformer",
      [small] {
        return std::make_unique<nn::Transformer>(nn::TransformerOptions{
            .d_model = 8, .nhead = 2, .num_encoder_layers = 1, .num_decoder_layers = 1, .layer = small});
      },
      [](int64_t b) -> std::vector<Tensor> {
        return {randn({b, 3, 8}), randn({b, 4, 8})};
      })
      .tolerance = 32;
#undef LAYER
#undef LAYER_OF
  return cases;
}

}  // namespace

const std::vector<OnnxCase>& onnx_layer_cases() {
  static const std::vector<OnnxCase> cases = all_cases();
  return cases;
}

}  // namespace levin::test
