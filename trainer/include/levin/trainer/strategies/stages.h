#pragma once
// Capability of strategies whose ranks hold consecutive layers of the network (pipeline).

#include <levin/core/state_dict.h>
#include <levin/data/batch.h>

#include <functional>

namespace levin {

/// Callbacks into StepRunner for strategies that run the forwards and backwards of a batch's parts in their own order.
class BatchParts {
 public:
  virtual ~BatchParts() = default;
  /// Runs training_step on part `number` and returns its share of the batch's loss, for backward().
  virtual Tensor forward(std::size_t number, const Batch& part) = 0;
  /// Runs backward from such a share.
  virtual void backward(const Tensor& share) = 0;
  /// Runs training_step on a rank that needs only its beginning and ends it by an exception; logged values are dropped.
  virtual void begin(const Batch& part) = 0;
  /// Runs layers in the precision's types.
  virtual std::vector<Tensor> compute(const std::function<std::vector<Tensor>()>& layers) = 0;
};

/// Each rank computes with the layers of its stage; all ranks read the same batches.
class Stages {
 public:
  virtual ~Stages() = default;
  /// Runs forward and backward of one batch. Collective; only rank zero has the loss.
  virtual void run_batch(const Batch& batch, BatchParts& parts) = 0;
  /// True if this rank computes with and steps a parameter of the module.
  virtual bool owns(const Tensor& parameter) const = 0;
  /// Gathers entries that each belong to one rank: all of them, on rank zero, in any order. Collective.
  virtual StateDict gather_state_dict(const StateDict& own) const = 0;
};

}  // namespace levin
