#pragma once
// A warning about a loss that is not finite, which names the step and the module.

#include <levin/kernels/host_read.h>

#include "src/loops/run.h"

namespace levin {

/// Warns once per fit of a loss that is NaN or infinite, unless the loss scaler skips its window. The losses of a CPU
/// are known at once. On a device those of windows whose values are logged are read, with these values: no step waits.
///
/// The module is found by a second forward of the batch with the same random numbers, which leaves generator, buffers
/// and logged values as they are. It is not training_step, which may have effects of its own, but the module's forward,
/// or that of its only child with parameters. It communicates with no other rank: where it would have to, where forward
/// takes other arguments than the first tensor of the batch, and with manual optimization, the warning names the step
/// only.
class LossCheck {
 public:
  explicit LossCheck(Run& run) : run_(run) {}

  /// Before training_step. `batch` must live until end_batch.
  void begin_batch(const Batch& batch);
  void take_loss(const Tensor& loss);
  /// Before the optimizer's step, while the weights are those of the loss. `skipped` becomes nonzero if there is none.
  void before_step(const HostRead& skipped);
  /// After the step; `logged`: the host has just read the values of this step, so it may read the loss too.
  void end_batch(bool logged);

 private:
  /// A batch whose loss is not finite, or is on its way to the host.
  struct Suspect {
    Batch batch;
    GeneratorState random;  // before the batch
    std::int64_t step;      // from 1
    HostRead loss;
  };
  void judge();
  std::string cause(const Suspect& suspect) const;
  void forward_again(const Suspect& suspect, nn::Module& network) const;
  std::int64_t optimizer_steps() const;

  Run& run_;
  bool warned_ = false;
  const Batch* batch_ = nullptr;
  GeneratorState random_;
  std::int64_t optimizer_steps_ = 0;  // before the batch
  std::optional<Suspect> suspect_;
  std::optional<HostRead> skipped_;
};

}  // namespace levin
