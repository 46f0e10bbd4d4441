#pragma once
// How many processes and devices take part. Knows nothing of precision.

#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/trainer/limits.h>

#include <memory>
#include <string>

namespace levin {

enum class ReduceOp { sum, mean, min, max };

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Device device() const = 0;  ///< of this process
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  bool is_global_zero() const { return rank() == 0; }

  /// Puts the module on the device, before the optimizers are made.
  virtual void setup(nn::Module& module) = 0;
  virtual Batch to_device(Batch batch) const = 0;
  /// From now on backward leaves gradients as they are (true), or reduces them over the ranks (false): the batches of
  /// an accumulation window but its last need no exchange.
  virtual void no_sync(bool on) = 0;
  /// Waits for the reductions that backward began.
  virtual void finish_reduction() = 0;
  virtual double reduce(double value, ReduceOp op) = 0;
  /// The same for a tensor where it lies; the host does not wait.
  virtual Tensor reduce(const Tensor& value, ReduceOp op) = 0;
  virtual void barrier() = 0;
};

/// "auto" and "single" give one process on `device`; UsageError names what is built for any other name.
std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device = kCpu);

/// The device of --accelerator ("auto", "cpu", "cuda", "gpu") and --devices. "auto" takes a GPU where the machine has
/// one. Throws UsageError.
Device choose_device(const std::string& accelerator, const DeviceList& devices);

}  // namespace levin
