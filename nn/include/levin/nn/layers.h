#pragma once
// Linear, convolution, pooling, embedding, normalization and dropout layers. Names, defaults and initial values are
// PyTorch's.

#include <levin/autograd/ops/conv.h>
#include <levin/nn/layer.h>

namespace levin::nn {

struct LinearOptions {
  bool bias = true;
};
/// Computes x W^T + b: (..., in_features) to (..., out_features). Weight (out, in) and bias (out) are initialized
/// uniformly in +-1 / sqrt(in_features).
class Linear : public Layer<Linear> {
 public:
  using Options = LinearOptions;
  Linear(int64_t in_features, int64_t out_features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_features, out_features, Options{.bias = bias.defined()});
  }

  const int64_t in_features, out_features;
  Parameter& weight;  ///< (out_features, in_features)
  Parameter& bias;    ///< (out_features) or undefined
};

struct Conv2dOptions {
  Tuple<2> stride = 1;
  Tuple<2> padding = 0;
  Tuple<2> dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};
/// Computes the cross-correlation: (B, C, H, W) to (B, O, H', W'), or (C, H, W) to (O, H', W').
class Conv2d : public Layer<Conv2d> {
 public:
  using Options = Conv2dOptions;
  Conv2d(int64_t in_channels, int64_t out_channels, Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_channels, out_channels, kernel_size, options);
  }

  const int64_t in_channels, out_channels;
  const Tuple<2> kernel_size;
  const Options options;
  Parameter& weight;  ///< (O, C / groups, kh, kw)
  Parameter& bias;    ///< (O) or undefined
};

struct ConvTranspose2dOptions {
  Tuple<2> stride = 1;
  Tuple<2> padding = 0;
  Tuple<2> output_padding = 0;
  int64_t groups = 1;
  bool bias = true;
  Tuple<2> dilation = 1;
};
/// Computes the gradient of Conv2d with respect to its input: (B, C, H, W) to (B, O, H', W'), or (C, H, W) to
/// (O, H', W'), with H' = (H - 1) stride - 2 padding + dilation (kh - 1) + output_padding + 1.
class ConvTranspose2d : public Layer<ConvTranspose2d> {
 public:
  using Options = ConvTranspose2dOptions;
  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in_channels, out_channels, kernel_size, options);
  }

  const int64_t in_channels, out_channels;
  const Tuple<2> kernel_size;
  const Options options;
  Parameter& weight;  ///< (C, O / groups, kh, kw)
  Parameter& bias;
};

class MaxPool2d : public Layer<MaxPool2d> {
 public:
  using Options = levin::MaxPool2dOptions;
  explicit MaxPool2d(Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(kernel_size, options);
  }

  const Tuple<2> kernel_size;
  const Options options;
};

class AvgPool2d : public Layer<AvgPool2d> {
 public:
  using Options = levin::AvgPool2dOptions;
  explicit AvgPool2d(Tuple<2> kernel_size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(kernel_size, options);
  }

  const Tuple<2> kernel_size;
  const Options options;
};

/// Flattens the axes start_dim..end_dim into one.
class Flatten : public Layer<Flatten> {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(start_dim, end_dim);
  }

  const int64_t start_dim, end_dim;
};

class Identity : public Layer<Identity> {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

/// Zeroes elements with probability p while training and scales the others by 1 / (1 - p).
class Dropout : public Layer<Dropout> {
 public:
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(p);
  }

  const double p;
};

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx{};  ///< this row is initialized to zeros and gets no gradient
};
/// Looks up rows of a table (num_embeddings, embedding_dim) by int64 or int32 index: (...) to (..., embedding_dim). The
/// table is initialized from the standard normal distribution.
class Embedding : public Layer<Embedding> {
 public:
  using Options = EmbeddingOptions;
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const Options& options = {});
  Tensor forward(const Tensor& index) override;
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_embeddings, embedding_dim, Options{.padding_idx = padding_idx});
  }

  const int64_t num_embeddings, embedding_dim;
  const std::optional<int64_t> padding_idx;
  Parameter& weight;
};

struct BatchNorm2dOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< nullopt: the average over all batches
  bool affine = true;
  bool track_running_stats = true;
};
/// Normalizes each channel of (B, C, ...) by the statistics of the batch during training, otherwise by the running
/// statistics (Ioffe & Szegedy 2015). Its buffers are running_mean, running_var and num_batches_tracked.
class BatchNorm : public Layer<BatchNorm> {
 public:
  using Options = BatchNorm2dOptions;
  explicit BatchNorm(int64_t num_features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  /// Replaces batch_norm during training, for statistics over more than the local batch
  /// (distributed::convert_sync_batchnorm). It must also update the running statistics with `momentum`. Clones do not
  /// keep it.
  using Normalizer = std::function<Tensor(const BatchNorm& module, const Tensor& x, double momentum)>;
  void set_normalizer(Normalizer f);
  void reset_running_stats();
  BatchNorm* as_batch_norm() override { return this; }
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_features, options);
  }

  const int64_t num_features;
  const Options options;
  const Tensor weight, bias;
  const Tensor running_mean, running_var, num_batches_tracked;

 private:
  Normalizer normalizer_;
};

/// Applies BatchNorm to (B, C, H, W); throws ShapeError for other numbers of axes.
class BatchNorm2d : public Layer<BatchNorm2d, BatchNorm> {
 public:
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
};
/// Normalizes over the last dimensions, whose sizes are normalized_shape (Ba et al. 2016).
class LayerNorm : public Layer<LayerNorm> {
 public:
  using Options = LayerNormOptions;
  explicit LayerNorm(const Shape& normalized_shape, const Options& options = {});
  explicit LayerNorm(int64_t features, const Options& o = {}) : LayerNorm(Shape{features}, o) {}
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(normalized_shape, options);
  }

  const Shape normalized_shape;
  const Options options;
  const Tensor weight, bias;
};

}  // namespace levin::nn
