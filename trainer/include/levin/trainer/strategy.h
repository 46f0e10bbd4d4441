#pragma once
// How many processes and devices take part. Knows nothing of precision.

#include <levin/core/state_map.h>
#include <levin/data/batch.h>
#include <levin/nn/module.h>
#include <levin/trainer/limits.h>

#include <memory>
#include <string>
#include <type_traits>

namespace levin {

enum class ReduceOp { sum, mean, min, max };

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  virtual Device device() const = 0;  ///< of this process
  virtual int rank() const = 0;
  virtual int world_size() const = 0;
  virtual int local_rank() const = 0;  ///< among the processes of this machine
  virtual int node_rank() const = 0;   ///< of this machine among all
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
  /// What rank `src` has, on every rank. The tensor has the same sizes and type on all of them.
  virtual Tensor broadcast(const Tensor& value, int src) = 0;
  virtual StateMap broadcast(const StateMap& values, int src) = 0;
  /// The tensors of all ranks, (world_size, ...) where there are several; one rank's has its own sizes, as Lightning's.
  /// With `sync_grads` a gradient goes back to each rank's own.
  virtual Tensor all_gather(const Tensor& value, bool sync_grads) = 0;
  virtual void barrier() = 0;

  /// Runs f on rank zero while the others wait, then on them: what the first makes (a download, a folder), the others
  /// find. `local`: by machine. Where rank zero's throws, the others go on to theirs.
  template <class F>
  std::invoke_result_t<F> rank_zero_first(F&& f, bool local = false) {
    const bool first = (local ? local_rank() : rank()) == 0;
    if (!first) {
      barrier();
      return f();
    }
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      release_after(f);
      barrier();
    } else {
      auto made = release_after(f);
      barrier();
      return made;
    }
  }

 private:
  template <class F>
  auto release_after(F& f) {
    try {
      return f();
    } catch (...) {
      barrier();
      throw;
    }
  }
};

/// "auto" and "single" give one process on `device`; UsageError names what is built for any other name.
std::unique_ptr<Strategy> make_strategy(const std::string& name, Device device = kCpu);

/// The device of --accelerator ("auto", "cpu", "cuda", "gpu") and --devices. "auto" takes a GPU where the machine has
/// one. Throws UsageError.
Device choose_device(const std::string& accelerator, const DeviceList& devices);

}  // namespace levin
