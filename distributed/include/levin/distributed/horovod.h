#pragma once
// Data parallelism with Horovod's protocol: ready gradients are collected in a fusion buffer, and every few
// milliseconds the ranks negotiate which gradients are ready on all of them. An independent implementation, which does
// not link Horovod.
// A. Sergeev, M. Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow" (arXiv:1802.05799, 2018).

#include <levin/distributed/comm_hooks.h>
#include <levin/distributed/rendezvous.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

/// Type to which gradients are rounded for communication. With fp16 each gradient is rounded, they are summed in
/// float32, and the average is rounded: the error is at most 2^-10 of the gradients' mean absolute value, plus 2^-24
/// where fp16 is subnormal. Beyond 65504 a gradient is infinite.
enum class Compression : std::uint8_t { none, fp16 };

/// Options of FusedExchange and DistributedOptimizer, with Horovod's names; the same on all ranks.
struct HorovodOptions {
  int64_t fusion_threshold = int64_t{64} << 20;  ///< most bytes in one message; 0: each tensor by itself
  double cycle_time = 5;                         ///< least milliseconds between two negotiations
  Compression compression = Compression::none;   ///< type of the messages
  int backward_passes_per_step = 1;  ///< number of backward passes whose gradients are accumulated before an exchange
};

/// Returns the options, overridden by HOROVOD_FUSION_THRESHOLD (bytes) and HOROVOD_CYCLE_TIME (milliseconds). Throws
/// ValueError where one is not such a number.
HorovodOptions horovod_options(const Environment& env, HorovodOptions options = {});

/// Averages gradients over all ranks as they become ready.
///
/// In each cycle the ranks tell each other which gradients are ready. Those that are ready on all ranks are reduced at
/// once, in the reverse order of the parameters, as many of one dtype and device in one message as the threshold
/// allows. Which cycle takes which gradient depends on timing, but results do not: with up to 2 ranks the averages of
/// 32 and 64 bits equal those of DDP bit by bit; with more ranks each is summed from rank 0 on, which differs from DDP
/// by rounding.
class FusedExchange {
 public:
  /// Takes the parameters that require grad. All ranks pass the same ones in the same order, and a group of all ranks.
  /// Throws ValueError for a sub-group, or for options out of range.
  FusedExchange(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
                const HorovodOptions& options = {});
  ~FusedExchange();
  FusedExchange(const FusedExchange&) = delete;
  FusedExchange& operator=(const FusedExchange&) = delete;

  /// While off, backward only accumulates this rank's gradients. Initially on.
  void set_sync(bool on);
  /// Returns when all gradients are averages. A missing gradient counts as zero. Must be called on all ranks.
  void synchronize();
  /// True between the first gradient that became ready and synchronize().
  bool in_flight() const;

  /// Names of the parameters whose gradients shared a message in the last step, in the order of the messages.
  std::vector<std::vector<std::string>> groups() const;
  /// Number of negotiations in the last step.
  int64_t cycles() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Wraps an optimizer so that it steps on averages over the ranks:
///
///   broadcast_all(group, parameters);
///   broadcast_optimizer_state(sgd, *group);
///   DistributedOptimizer opt(sgd, group);
///   cross_entropy(net(x), y).backward();  // gradients are exchanged meanwhile
///   opt.step();
class DistributedOptimizer {
 public:
  /// Takes the optimizer's current parameters; throws what FusedExchange throws.
  DistributedOptimizer(optim::Optimizer& optimizer, const std::shared_ptr<ProcessGroup>& group,
                       const HorovodOptions& options = {});
  /// Waits for the averages if synchronize() has not been called since the last backward, then steps.
  void step();
  /// Waits for the averages, for work before the step such as clipping.
  void synchronize();
  /// As Optimizer::zero_grad. Throws GradError while gradients are being exchanged.
  void zero_grad(bool set_to_none = true);
  /// The exchange that averages the gradients.
  FusedExchange& exchange() { return exchange_; }

 private:
  optim::Optimizer& optimizer_;
  FusedExchange exchange_;
  bool synchronized_ = false;
};

/// Broadcasts the settings and state of rank 0's optimizer, also where only one of two ranks has a state. Throws
/// StateError where the optimizers are of different kinds or have different parameters.
void broadcast_optimizer_state(optim::Optimizer& optimizer, ProcessGroup& group);

}  // namespace levin::distributed
