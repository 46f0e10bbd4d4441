#pragma once
// Normalization layers. Names and defaults are PyTorch's.

#include <levin/nn/layer.h>

#include <functional>

namespace levin::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< nullopt: the average over all batches
  bool affine = true;
  bool track_running_stats = true;
};
using BatchNorm1dOptions = BatchNormOptions;
using BatchNorm2dOptions = BatchNormOptions;
using BatchNorm3dOptions = BatchNormOptions;
/// Normalizes each channel of (B, C, ...) by the statistics of the batch during training, otherwise by the running
/// statistics (Ioffe & Szegedy 2015). Its buffers are running_mean, running_var and num_batches_tracked.
class BatchNorm : public Layer<BatchNorm> {
 public:
  using Options = BatchNormOptions;
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
  explicit LayerNorm(int64_t features, const Options& options = {});
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

struct RMSNormOptions {
  std::optional<double> eps{};  ///< defaults to the spacing of the input's type at 1
  bool elementwise_affine = true;
};
/// Divides by the root of the mean square over the last dimensions (Zhang & Sennrich 2019).
class RMSNorm : public Layer<RMSNorm> {
 public:
  using Options = RMSNormOptions;
  explicit RMSNorm(const Shape& normalized_shape, const Options& options = {});
  explicit RMSNorm(int64_t features, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(normalized_shape, options);
  }

  const Shape normalized_shape;
  const Options options;
  const Tensor weight;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
};
/// Normalizes groups of channels of each sample of (B, C, ...) (Wu & He 2018).
class GroupNorm : public Layer<GroupNorm> {
 public:
  using Options = GroupNormOptions;
  GroupNorm(int64_t num_groups, int64_t num_channels, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_groups, num_channels, options);
  }

  const int64_t num_groups, num_channels;
  const Options options;
  const Tensor weight, bias;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  bool affine = false;
};
/// Normalizes each channel of each sample of (B, C, ...), or of one sample, (C, ...), by its own statistics (Ulyanov et
/// al. 2016). Running statistics are not tracked, as by PyTorch's default.
class InstanceNorm : public Layer<InstanceNorm> {
 public:
  using Options = InstanceNormOptions;
  /// `spatial` is the only number of axes after the channels that forward takes; 0 stands for any, with a batch.
  explicit InstanceNorm(int64_t num_features, const Options& options = {}, int spatial = 0);
  Tensor forward(const Tensor& x) override;
  bool is_normalization() const override { return true; }
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_features, options);
  }

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
LEVIN_INSTANCE_NORM(InstanceNorm1d, 1)
LEVIN_INSTANCE_NORM(InstanceNorm2d, 2)
LEVIN_INSTANCE_NORM(InstanceNorm3d, 3)
#undef LEVIN_INSTANCE_NORM

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};
/// See levin::local_response_norm.
class LocalResponseNorm : public Layer<LocalResponseNorm> {
 public:
  using Options = LocalResponseNormOptions;
  explicit LocalResponseNorm(int64_t size, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  template <class F>
  auto with_arguments(F construct) const {
    return construct(size, options);
  }

  const int64_t size;
  const Options options;
};

}  // namespace levin::nn
