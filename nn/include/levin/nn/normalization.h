#pragma once
// Normalization layers. Names and defaults are PyTorch's.

#include <levin/nn/layer.h>

#include <functional>

namespace levin::nn {

/// Options of BatchNorm.
struct BatchNormOptions {
  double eps = 1e-5;                     ///< added to the variance
  std::optional<double> momentum = 0.1;  ///< weight of a batch in the running statistics; nullopt: their average
  bool affine = true;                    ///< multiplies by a learned weight and adds a bias, one each per channel
  bool track_running_stats = true;       ///< without them, evaluation uses the statistics of its batch too
};
/// PyTorch's names of the options.
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
/// Normalizes each channel of (B, C, ...), (x - mean) / sqrt(var + eps) * weight + bias, by the statistics of the batch
/// during training (biased variance), otherwise by the running statistics (Ioffe & Szegedy 2015). num_features is C.
/// weight, bias and the buffers running_mean and running_var (unbiased) are (C), num_batches_tracked is () int64; those
/// that the options leave out are undefined. forward throws ShapeError for another C, and ValueError for training with
/// one value per channel.
class BatchNorm : public Layer<BatchNorm> {
 public:
  using Options = BatchNormOptions;
  /// Begins with weights of 1, biases of 0, running means of 0 and running variances of 1.
  explicit BatchNorm(int64_t num_features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  /// Replaces batch_norm during training, for statistics over more than the local batch
  /// (distributed::convert_sync_batchnorm). It must also update the running statistics with `momentum`. Clones do not
  /// keep it.
  using Normalizer = std::function<Tensor(const BatchNorm& module, const Tensor& x, double momentum)>;
  void set_normalizer(Normalizer f);
  /// Sets the running means to 0, the running variances to 1 and the count of batches to 0.
  void reset_running_stats();
  BatchNorm* as_batch_norm() override { return this; }
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(num_features, options); }

  const int64_t num_features;
  const Options options;
  const Tensor weight, bias;
  const Tensor running_mean, running_var, num_batches_tracked;

 private:
  Normalizer normalizer_;
};

/// Applies BatchNorm to (B, C) or (B, C, L); throws ShapeError for other numbers of axes.
class BatchNorm1d : public Layer<BatchNorm1d, BatchNorm> {
 public:
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};
/// Applies BatchNorm to (B, C, H, W); throws ShapeError for other numbers of axes.
class BatchNorm2d : public Layer<BatchNorm2d, BatchNorm> {
 public:
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};
/// Applies BatchNorm to (B, C, D, H, W); throws ShapeError for other numbers of axes.
class BatchNorm3d : public Layer<BatchNorm3d, BatchNorm> {
 public:
  using Layer::Layer;
  Tensor forward(const Tensor& x) override;
};

/// Options of LayerNorm.
struct LayerNormOptions {
  double eps = 1e-5;               ///< added to the variance
  bool elementwise_affine = true;  ///< multiplies by a learned weight (and adds a bias) for each element
  bool bias = true;                ///< adds a learned bias, if elementwise_affine
};
/// Normalizes each sample over the last dimensions, whose sizes are normalized_shape: (x - mean) / sqrt(var + eps) *
/// weight + bias (Ba et al. 2016). weight and bias have normalized_shape or are undefined. forward throws ShapeError
/// for other last sizes.
class LayerNorm : public Layer<LayerNorm> {
 public:
  using Options = LayerNormOptions;
  /// `features` stands for a normalized_shape of one dimension.
  explicit LayerNorm(const Shape& normalized_shape, const Options& options = {});
  explicit LayerNorm(int64_t features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(normalized_shape, options); }

  const Shape normalized_shape;
  const Options options;
  const Tensor weight, bias;
};

/// Options of RMSNorm.
struct RMSNormOptions {
  std::optional<double> eps{};     ///< added to the mean square; defaults to the spacing of the input's type at 1
  bool elementwise_affine = true;  ///< multiplies by a learned weight for each element
};
/// Divides by the root of the mean square over the last dimensions, whose sizes are normalized_shape, and multiplies by
/// `weight`, which has that shape or is undefined (Zhang & Sennrich 2019). forward throws ShapeError for other last
/// sizes.
class RMSNorm : public Layer<RMSNorm> {
 public:
  using Options = RMSNormOptions;
  /// `features` stands for a normalized_shape of one dimension.
  explicit RMSNorm(const Shape& normalized_shape, const Options& options = {});
  explicit RMSNorm(int64_t features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(normalized_shape, options); }

  const Shape normalized_shape;
  const Options options;
  const Tensor weight;
};

/// Options of GroupNorm.
struct GroupNormOptions {
  double eps = 1e-5;   ///< added to the variance
  bool affine = true;  ///< multiplies by a learned weight and adds a bias, one each per channel
};
/// Normalizes num_groups groups of the num_channels channels of each sample of (B, C, ...) (Wu & He 2018). weight and
/// bias are (C) or undefined. forward throws ShapeError for another C than theirs, and ValueError if the groups do not
/// divide it.
class GroupNorm : public Layer<GroupNorm> {
 public:
  using Options = GroupNormOptions;
  /// Throws ValueError if the groups do not divide the channels.
  GroupNorm(int64_t num_groups, int64_t num_channels, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(num_groups, num_channels, options); }

  const int64_t num_groups, num_channels;
  const Options options;
  const Tensor weight, bias;
};

/// Options of InstanceNorm.
struct InstanceNormOptions {
  double eps = 1e-5;    ///< added to the variance
  bool affine = false;  ///< multiplies by a learned weight and adds a bias, one each per channel
};
/// Normalizes each channel of each sample of (B, C, ...), or of one sample, (C, ...), by its own statistics
/// (Ulyanov et al. 2016). num_features is C; weight and bias are (C) or undefined. Running statistics are not tracked,
/// as by PyTorch's default.
class InstanceNorm : public Layer<InstanceNorm> {
 public:
  using Options = InstanceNormOptions;
  /// `spatial` is the only number of axes after the channels that forward takes; 0 stands for any, with a batch.
  explicit InstanceNorm(int64_t num_features, const Options& options = {}, int spatial = 0);
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(num_features, options); }

  const int64_t num_features;
  const Options options;
  const Tensor weight, bias;

 private:
  int spatial_;
};

#define LEVIN_INSTANCE_NORM(Class, spatial)                                       \
  class Class : public Layer<Class, InstanceNorm> {                               \
   public:                                                                        \
    explicit Class(int64_t features, const Options& o = {});                      \
    Tensor forward(const Tensor& x) override { return InstanceNorm::forward(x); } \
  };
/// InstanceNorm of (B, C, L) or (C, L) with C `features`; forward throws ShapeError for other numbers of axes.
LEVIN_INSTANCE_NORM(InstanceNorm1d, 1)
/// InstanceNorm of (B, C, H, W) or (C, H, W) with C `features`; forward throws ShapeError for other numbers of axes.
LEVIN_INSTANCE_NORM(InstanceNorm2d, 2)
/// InstanceNorm of (B, C, D, H, W) or (C, D, H, W) with C `features`; forward throws ShapeError for other numbers of
/// axes.
LEVIN_INSTANCE_NORM(InstanceNorm3d, 3)
#undef LEVIN_INSTANCE_NORM

/// Options of LocalResponseNorm.
struct LocalResponseNormOptions {
  double alpha = 1e-4;  ///< factor of the mean square
  double beta = 0.75;   ///< exponent
  double k = 1.0;       ///< addend
};
/// Divides by (k + alpha / size * sum of squares over `size` neighbouring channels)^beta; x is (B, C, ...) with one
/// spatial axis or more (Krizhevsky et al. 2012). forward throws ShapeError for others, and ValueError for a size below
/// 1.
class LocalResponseNorm : public Layer<LocalResponseNorm> {
 public:
  using Options = LocalResponseNormOptions;
  explicit LocalResponseNorm(int64_t size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  auto with_arguments(auto construct) const { return construct(size, options); }

  const int64_t size;
  const Options options;
};

}  // namespace levin::nn
