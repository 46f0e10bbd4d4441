#pragma once
// Batch normalisation by the statistics of all ranks: the same as one process with the whole batch, also where ranks
// have batches of different sizes.

#include <levin/autograd/ops/norm.h>
#include <levin/distributed/process_group.h>
#include <levin/nn/layers.h>

namespace levin::distributed {

/// As levin::batch_norm in training, with mean and variance over the batches of all ranks of the group. x is (B, C,
/// ...), weight, bias, running_mean and running_var are (C) or undefined. Ranks agree in C and dtype; B may differ and
/// may be 0. Two exchanges of C numbers forward and two backward, which all ranks run; gradients of gradients work.
/// Statistics of 16-bit floats are computed in float32 at least, sums over the ranks in float64.
Tensor sync_batch_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                       const Tensor& running_var, const BatchNormOptions& options,
                       const std::shared_ptr<ProcessGroup>& group);

/// Normalises each channel of (B, C, ...) by the statistics of all ranks' batches in training, else by the running
/// ones. Buffers and parameters are those of nn::BatchNorm2d.
class SyncBatchNorm : public nn::Module {
 public:
  using Options = nn::BatchNorm2dOptions;
  SyncBatchNorm(int64_t num_features, std::shared_ptr<ProcessGroup> group, const Options& options = {});
  Tensor forward(const Tensor& x) override;
  std::string extra_repr() const override;
  std::unique_ptr<nn::Module> fresh() const override;

  const int64_t num_features;
  const Options options;
  const Tensor weight, bias;
  const Tensor running_mean, running_var, num_batches_tracked;

 private:
  std::shared_ptr<ProcessGroup> group_;
};

/// Every BatchNorm2d in `module` (and itself) takes its statistics from all ranks of the group from now on. Names,
/// values and state dictionaries stay as they are. Returns how many there are. Copies made by nn::clone are to be
/// converted again.
int64_t convert_sync_batchnorm(nn::Module& module, std::shared_ptr<ProcessGroup> group);

}  // namespace levin::distributed
