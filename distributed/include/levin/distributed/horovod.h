#pragma once
// Data parallelism with Horovod's rules: gradients that are ready gather in a fusion buffer, and every few milliseconds
// the ranks agree on those that all of them have. Our own implementation; Horovod itself is not linked.
// A. Sergeev, M. Del Balso, "Horovod: fast and easy distributed deep learning in TensorFlow" (arXiv:1802.05799, 2018).

#include <levin/distributed/comm_hooks.h>
#include <levin/distributed/rendezvous.h>
#include <levin/optim/optimizer.h>

namespace levin::distributed {

/// What gradients are rounded to on their way. fp16: each is rounded, they are summed in float32, and the average is
/// rounded: an error of at most 2^-10 of the gradients' mean absolute value, plus 2^-24 where fp16 is near its smallest
/// numbers. Beyond 65504 a gradient is infinite.
enum class Compression : std::uint8_t { none, fp16 };

struct HorovodOptions {
  int64_t fusion_threshold = int64_t{64} << 20;  ///< bytes that travel together at most; 0: each tensor by itself
  double cycle_time = 5;                         ///< milliseconds from one agreement to the next, at least
  Compression compression = Compression::none;
  int backward_passes_per_step = 1;  ///< gradients of so many backwards add up before they travel
};

/// The options with what HOROVOD_FUSION_THRESHOLD (bytes) and HOROVOD_CYCLE_TIME (milliseconds) say. Throws ValueError
/// for text that is no such number.
HorovodOptions horovod_options(const Environment& env, HorovodOptions options = {});

/// Averages gradients over all ranks, as they become ready.
///
/// In each cycle the ranks tell each other which gradients they have. Those that all have travel at once, in the
/// opposite order of the parameters, as many of one dtype and device in one message as the threshold allows. Which
/// cycle takes which gradient depends on timing; results do not: with up to 2 ranks the averages of 32 and 64 bits have
/// the bits of ddp, with more each is summed from rank 0 on, which differs from ddp by rounding.
class FusedExchange {
 public:
  /// Takes the parameters that require grad. All ranks give the same ones in the same order, and a group of all ranks;
  /// throws ValueError for a sub-group, or for options out of range.
  FusedExchange(std::vector<Parameter> parameters, std::shared_ptr<ProcessGroup> group,
                const HorovodOptions& options = {});
  ~FusedExchange();
  FusedExchange(const FusedExchange&) = delete;
  FusedExchange& operator=(const FusedExchange&) = delete;

  /// While off, backward only adds up this rank's gradients. On at first.
  void set_sync(bool on);
  /// Returns when all gradients are averages. One that no backward has made counts as zero. All ranks call it.
  void synchronize();
  /// Between the first gradient that became ready and synchronize().
  bool in_flight() const;

  /// Names of the parameters whose gradients travelled together in the last step, in the order of the messages.
  std::vector<std::vector<std::string>> groups() const;
  /// Agreements of the last step.
  int64_t cycles() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// An optimizer that steps on averages over the ranks:
///
///   broadcast_all(group, parameters);
///   broadcast_optimizer_state(sgd, *group);
///   DistributedOptimizer opt(sgd, group);
///   cross_entropy(net(x), y).backward();  // gradients travel meanwhile
///   opt.step();
class DistributedOptimizer {
 public:
  /// Takes the parameters that the optimizer has now; throws as FusedExchange does.
  DistributedOptimizer(optim::Optimizer& optimizer, const std::shared_ptr<ProcessGroup>& group,
                       const HorovodOptions& options = {});
  /// Waits for the averages where synchronize() has not been called since the last backward, then steps.
  void step();
  /// For what comes before the step, such as clipping.
  void synchronize();
  /// Throws GradError while gradients travel.
  void zero_grad(bool set_to_none = true);
  FusedExchange& exchange() { return exchange_; }

 private:
  optim::Optimizer& optimizer_;
  FusedExchange exchange_;
  bool synchronized_ = false;
};

/// The optimizer's settings and state become those of rank 0, also where only one of them has a state. Throws
/// StateError where the optimizers are of other kinds or have other parameters.
void broadcast_optimizer_state(optim::Optimizer& optimizer, ProcessGroup& group);

}  // namespace levin::distributed
