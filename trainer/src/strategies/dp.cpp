#include "src/strategies/replicas.h"
#include "src/strategies/single.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

/// One process with one replica per device: scatters the batch, copies the parameters, and gathers outputs and
/// gradients on the first device, where the optimizer steps.
class Dp final : public SingleDevice {
 public:
  explicit Dp(const std::vector<Device>& devices) : SingleDevice(devices[0]), replicas_(devices) {}
  std::string name() const override { return "dp"; }
  void setup(nn::Module& module) override {
    SingleDevice::setup(module);
    replicas_.setup(module, name());
  }
  std::size_t replicas() const override { return replicas_.size(); }
  std::vector<Tensor> on_replicas(LevinModule& module, const Batch& batch, const ReplicaStep& step) override {
    return replicas_.run(module, batch, step);
  }

 private:
  ModuleReplicas replicas_;
};

}  // namespace

std::unique_ptr<Strategy> make_dp(const StrategyChoice& choice) { return std::make_unique<Dp>(choice.devices); }

}  // namespace levin
