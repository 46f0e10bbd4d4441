#pragma once
// Capability of strategies that hold several copies of the module in one process (dp, ddp2).

#include <levin/data/batch.h>

#include <functional>
#include <vector>

namespace levin {

class LevinModule;

/// Copies of the module on the devices of this process. A batch is split into parts, one per replica.
class Replicas {
 public:
  virtual ~Replicas() = default;
  /// Number of replicas, with the module itself.
  virtual std::size_t size() const = 0;
  /// Step of the module or a replica on its part of a batch; `number` is below size().
  using Step = std::function<std::vector<Tensor>(std::size_t number, LevinModule& replica, const Batch& part)>;
  /// Runs `step` on all replicas of the module that was set up. The results are concatenated on the strategy's device
  /// along dimension 0, part after part; scalars become rows. Throws UsageError for a batch that states its number of
  /// samples, since its rows are not samples.
  virtual std::vector<Tensor> run(const Batch& batch, const Step& step) = 0;
};

}  // namespace levin
