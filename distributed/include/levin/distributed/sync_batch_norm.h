#pragma once
// Batch normalisation by the statistics of all ranks, which equals one process with the whole batch, also where ranks
// have batches of different sizes.

#include <levin/autograd/ops/norm.h>
#include <levin/distributed/process_group.h>
#include <levin/nn/layers.h>

namespace levin::distributed {

/// As levin::batch_norm in training, with mean and variance over the batches of all ranks of the group, whatever
/// options.training is. x is (B, C, ...); running_mean, running_var, weight and bias are (C) or undefined. Ranks have
/// the same C and dtype; B may differ and may be 0. Forward and backward each run two exchanges of C numbers, on all
/// ranks; double backward is supported. Statistics of 16-bit floats are computed in float32 at least, sums over the
/// ranks in float64.
Tensor sync_batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var, const Tensor& weight,
                       const Tensor& bias, const BatchNormOptions& options,
                       const std::shared_ptr<ProcessGroup>& group);

/// Normalises each channel of (B, C, ...) by the statistics of all ranks' batches in training, else by the running
/// statistics. Evaluates as nn::BatchNorm. Throws ShapeError for other inputs.
class SyncBatchNorm : public nn::Layer<SyncBatchNorm, nn::BatchNorm> {
 public:
  /// Takes C and the group; `options` are those of nn::BatchNorm.
  SyncBatchNorm(int64_t num_features, std::shared_ptr<ProcessGroup> group, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  /// Calls `construct` with this module's constructor arguments, for nn::clone.
  template <class F>
  auto with_arguments(F construct) const {
    return construct(num_features, group_, options);
  }

 private:
  std::shared_ptr<ProcessGroup> group_;
};

/// Makes every nn::BatchNorm in `module` (and itself) use the statistics of all ranks of the group. Names, values and
/// state dicts do not change. Returns the number of these modules. Copies made by nn::clone must be converted again.
int64_t convert_sync_batchnorm(nn::Module& module, std::shared_ptr<ProcessGroup> group);

}  // namespace levin::distributed
