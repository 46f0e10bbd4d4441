#pragma once
// Linear, embedding and dropout layers, and layers that change the shape only; the other headers of layers are included
// here. Names, defaults and initial values are PyTorch's.

#include <levin/autograd/ops/indexing.h>
#include <levin/nn/convolution.h>
#include <levin/nn/layer.h>
#include <levin/nn/normalization.h>
#include <levin/nn/pooling.h>
#include <levin/nn/quantization.h>
#include <levin/nn/windows.h>

namespace levin::nn {

/// Options of Linear.
struct LinearOptions {
  bool bias = true;  ///< adds b
};
/// Computes x W^T + b: (..., in_features) to (..., out_features), of one floating dtype. forward throws ShapeError for
/// another last size.
class Linear : public Layer<Linear> {
 public:
  using Options = LinearOptions;
  Linear(int64_t in_features, int64_t out_features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  /// Initializes weight and bias anew, uniformly in +-1 / sqrt(in_features).
  void reset_parameters();
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const {
    return construct(in_features, out_features, Options{.bias = bias.defined()});
  }

  const int64_t in_features, out_features;
  Parameter& weight;  ///< (out_features, in_features)
  Parameter& bias;    ///< (out_features) or undefined
  Int8Weight int8{};  ///< set by quantize_
};

/// Flattens the axes start_dim..end_dim (included; negative ones count from the end) into one: by default (B, ...) to
/// (B, n). Returns a view where the strides allow it.
class Flatten : public Layer<Flatten> {
 public:
  explicit Flatten(int64_t start_dim = 1, int64_t end_dim = -1);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(start_dim, end_dim); }

  const int64_t start_dim, end_dim;
};

/// Returns its input.
class Identity : public Layer<Identity> {
 public:
  Tensor forward(const Tensor& x) override { return x; }
};

namespace detail {
/// The probability of a dropout.
class DropoutBase : public Module {
 public:
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(p); }

  const double p;

 protected:
  /// Throws ValueError, tagged with the layer's name, for a p outside of [0, 1].
  DropoutBase(const char* layer, double p);
};
}  // namespace detail

/// Zeroes elements with probability p while training and scales the others by 1 / (1 - p); returns its input otherwise
/// (Srivastava et al. 2014). Draws from the default generator.
class Dropout : public Layer<Dropout, detail::DropoutBase> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit Dropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};

/// Options of Embedding.
struct EmbeddingOptions {
  std::optional<int64_t> padding_idx{};  ///< this row is initialized to zeros and gets no gradient
  std::optional<double> max_norm{};      ///< rows that forward looks up are scaled down to this norm, in place
  double norm_type = 2.0;                ///< p of the p-norm that max_norm limits
  bool sparse = false;  ///< the weight gets a gradient of the rows in use alone, see autograd/row_gradient.h
};
/// Looks up rows of a table (num_embeddings, embedding_dim) by int64 or int32 index: (...) to (..., embedding_dim).
/// forward throws IndexError for an index outside of the table, and DTypeError for other dtypes.
class Embedding : public Layer<Embedding> {
 public:
  using Options = EmbeddingOptions;
  /// Throws IndexError for a padding_idx that is no row.
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const Options& options = {});
  Tensor forward(const Tensor& index) override;
  /// Draws the table anew from the standard normal distribution; the row padding_idx becomes zeros.
  void reset_parameters();
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(num_embeddings, embedding_dim, options); }

  const int64_t num_embeddings, embedding_dim;
  const Options options;
  const std::optional<int64_t> padding_idx;  ///< counted from the first row
  Parameter& weight;                         ///< (num_embeddings, embedding_dim)
};
/// Options of Bilinear.
struct BilinearOptions {
  bool bias = true;  ///< adds b
};
/// Computes x1^T W[o] x2 + b[o]: (..., in1_features) and (..., in2_features) to (..., out_features). forward throws
/// ShapeError for other last sizes.
class Bilinear : public Layer<Bilinear> {
 public:
  using Options = BilinearOptions;
  Bilinear(int64_t in1_features, int64_t in2_features, int64_t out_features, const Options& options = {});
  Tensor forward(const Tensor& x1, const Tensor& x2);
  /// Initializes weight and bias anew, uniformly in +-1 / sqrt(in1_features).
  void reset_parameters();
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const {
    return construct(in1_features, in2_features, out_features, Options{.bias = bias.defined()});
  }

  const int64_t in1_features, in2_features, out_features;
  Parameter& weight;  ///< (out, in1, in2)
  Parameter& bias;    ///< (out) or undefined
};

/// Splits the axis `dim` into axes of `sizes`, of which one may be -1 for the size that is left. forward throws
/// ShapeError if they do not multiply to the size of the axis.
class Unflatten : public Layer<Unflatten> {
 public:
  Unflatten(int64_t dim, const Shape& sizes);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(dim, sizes); }

  const int64_t dim;
  const Shape sizes;
};

using levin::BagMode, levin::EmbeddingBagOptions;
/// Combines rows of a table (num_embeddings, embedding_dim) for each bag of indices, see embedding_bag: (B, n) to (B,
/// embedding_dim), or a vector of indices with `offsets` (B). `per_sample_weights` need mode sum.
class EmbeddingBag : public Layer<EmbeddingBag> {
 public:
  using Options = EmbeddingBagOptions;
  /// Throws IndexError for a padding_idx that is no row.
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim, const Options& options = {});
  Tensor forward(const Tensor& index, const Tensor& offsets = {}, const Tensor& per_sample_weights = {});
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(num_embeddings, embedding_dim, options); }

  const int64_t num_embeddings, embedding_dim;
  const Options options;
  Parameter& weight;  ///< (num_embeddings, embedding_dim)
};

/// Zeroes whole channels of (B, C, ...) with probability p while training and scales the others by 1 / (1 - p)
/// (Tompson et al. 2015). x has any number of axes, but the batch axis is required: forward throws ShapeError for fewer
/// than two axes.
class FeatureDropout : public Layer<FeatureDropout, detail::DropoutBase> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit FeatureDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};
/// FeatureDropout of (B, C, L) or (C, L). forward throws ShapeError for other numbers of axes.
class Dropout1d : public Layer<Dropout1d, FeatureDropout> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit Dropout1d(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};
/// FeatureDropout of (B, C, H, W); as in PyTorch three axes are (B, C, L). forward throws ShapeError for other numbers
/// of axes.
class Dropout2d : public Layer<Dropout2d, FeatureDropout> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit Dropout2d(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};
/// FeatureDropout of (B, C, D, H, W) or (C, D, H, W). forward throws ShapeError for other numbers of axes.
class Dropout3d : public Layer<Dropout3d, FeatureDropout> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit Dropout3d(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};

/// AlphaDropout of whole channels of (B, C, ...) with probability p. forward throws ShapeError for fewer than two axes.
class FeatureAlphaDropout : public Layer<FeatureAlphaDropout, detail::DropoutBase> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit FeatureAlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};

/// Divides the channels of (B, C, ...) by their 2-norm and multiplies each by a learned factor, which begins as `scale`
/// (Liu et al. 2016, "SSD"). `channels` is C; forward throws ShapeError for another C.
class L2Norm : public Layer<L2Norm> {
 public:
  explicit L2Norm(int64_t channels, double scale = 20.0);
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(weight.numel(), scale); }

  const double scale;
  Parameter& weight;  ///< (C)
};

/// Options of PositionalEncoding.
struct PositionalEncodingOptions {
  double dropout = 0.1;      ///< probability with which elements of the sum are zeroed in training
  int64_t max_len = 5000;    ///< largest T
  bool batch_first = false;  ///< x is (B, T, E) instead of (T, B, E)
};
/// Adds sin(t / 10000^(2i / E)) to the even and the cosine to the odd columns of step t, and drops elements (Vaswani et
/// al. 2017). x is (T, B, E), or (B, T, E) with batch_first, where E is d_model. The table is the buffer "pe"
/// (max_len, 1, E), as in PyTorch's tutorial. forward throws ShapeError for other shapes and for T above max_len.
class PositionalEncoding : public Layer<PositionalEncoding> {
 public:
  using Options = PositionalEncodingOptions;
  explicit PositionalEncoding(int64_t d_model, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(d_model, options); }

  const int64_t d_model;
  const Options options;

 private:
  const Tensor table_;  // (max_len, 1, d_model)
};

/// Dropout for networks of SELU: sets elements, with probability p while training, to SELU's limit at minus infinity,
/// and maps the result so that mean 0 and variance 1 stay (Klambauer et al. 2017). Returns its input otherwise.
class AlphaDropout : public Layer<AlphaDropout, detail::DropoutBase> {
 public:
  /// Throws ValueError for a p outside of [0, 1].
  explicit AlphaDropout(double p = 0.5);
  Tensor forward(const Tensor& x) override;
};

}  // namespace levin::nn
