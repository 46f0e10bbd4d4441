#pragma once
// Linear, embedding and dropout layers, and layers that change the shape only; the other headers of layers are included
// here. Names, defaults and initial values are PyTorch's.

#include <levin/nn/convolution.h>
#include <levin/nn/layer.h>
#include <levin/nn/normalization.h>
#include <levin/nn/pooling.h>
#include <levin/nn/quantization.h>
#include <levin/nn/windows.h>

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
  Int8Weight int8{};  ///< set by quantize_
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
  std::optional<double> max_norm{};      ///< rows that forward looks up are scaled down to this norm, in place
  double norm_type = 2.0;
  bool sparse = false;  ///< the weight gets a gradient of the rows in use alone, see autograd/row_gradient.h
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
    return construct(num_embeddings, embedding_dim, options);
  }

  const int64_t num_embeddings, embedding_dim;
  const Options options;
  const std::optional<int64_t> padding_idx;
  Parameter& weight;
};
struct BilinearOptions {
  bool bias = true;
};
/// Computes x1^T W[o] x2 + b[o]: (..., in1_features) and (..., in2_features) to (..., out_features).
class Bilinear : public Layer<Bilinear> {
 public:
  using Options = BilinearOptions;
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const Options& options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2);
  void reset_parameters();
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(in1_features, in2_features, out_features, Options{.bias = bias.defined()});
  }

  const int64_t in1_features, in2_features, out_features;
  Parameter& weight;  ///< (out, in1, in2)
  Parameter& bias;    ///< (out) or undefined
};

/// Splits an axis into `sizes`.
class Unflatten : public Layer<Unflatten> {
 public:
  Unflatten(int64_t dim, const Shape& sizes);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(dim, sizes);
  }

  const int64_t dim;
  const Shape sizes;
};

enum class BagMode { sum, mean, max };
struct EmbeddingBagOptions {
  BagMode mode = BagMode::mean;
  std::optional<int64_t> padding_idx{};  ///< this row does not take part, and gets no gradient
  std::optional<double> max_norm{};      ///< rows that forward looks up are scaled down to this norm, in place
  double norm_type = 2.0;
  bool sparse = false;                   ///< as for Embedding
  bool include_last_offset = false;      ///< offsets has one more element, the number of indices
};
/// Combines rows of a table (num_embeddings, embedding_dim) for each bag of indices: (B, n) to (B, embedding_dim), or a
/// vector of indices with `offsets` (B), at which the bags begin. With mode sum, `per_sample_weights` of the index's
/// sizes multiply the rows. An empty bag gives zeros.
class EmbeddingBag : public Layer<EmbeddingBag> {
 public:
  using Options = EmbeddingBagOptions;
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const Options& options = {});
  Tensor forward(const Tensor& index, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_embeddings, embedding_dim, options);
  }

  const int64_t num_embeddings, embedding_dim;
  const Options options;
  Parameter& weight;
};

/// Drops whole channels of (B, C, ...) during training (Tompson et al. 2015). For (B, C, L), (B, C, H, W) and
/// (B, C, D, H, W), which PyTorch has three classes for.
class FeatureDropout : public Layer<FeatureDropout> {
 public:
  explicit FeatureDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(p);
  }

  const double p;
};
using Dropout1d = FeatureDropout;
using Dropout2d = FeatureDropout;
using Dropout3d = FeatureDropout;

/// alpha_dropout of whole channels of (B, C, ...).
class FeatureAlphaDropout : public Layer<FeatureAlphaDropout> {
 public:
  explicit FeatureAlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(p);
  }

  const double p;
};

/// Divides the channels of (B, C, ...) by their 2-norm and multiplies each by a learned factor, which begins as `scale`
/// (Liu et al. 2016, "SSD").
class L2Norm : public Layer<L2Norm> {
 public:
  explicit L2Norm(int64_t channels, double scale = 20.0);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(weight.numel(), scale);
  }

  const double scale;
  Parameter& weight;  ///< (C)
};

struct PositionalEncodingOptions {
  double dropout = 0.1;
  int64_t max_len = 5000;
  bool batch_first = false;  ///< x is (B, T, E) instead of (T, B, E)
};
/// Adds sin(t / 10000^(2i / E)) to the even and the cosine to the odd columns of step t, and drops elements (Vaswani et
/// al. 2017). The table is the buffer "pe" (max_len, 1, E), as in PyTorch's tutorial.
class PositionalEncoding : public Layer<PositionalEncoding> {
 public:
  using Options = PositionalEncodingOptions;
  explicit PositionalEncoding(int64_t d_model, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(d_model, options);
  }

  const int64_t d_model;
  const Options options;

 private:
  const Tensor table_;  // (max_len, 1, d_model)
};

/// See levin::alpha_dropout.
class AlphaDropout : public Layer<AlphaDropout> {
 public:
  explicit AlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(p);
  }

  const double p;
};

}  // namespace levin::nn
