// "dp" and "ddp2": several replicas of the module in one process.
#include "src/strategies/ddp.h"
#include "src/strategies/module_replicas.h"
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
  Replicas* replicas() override { return replicas_.if_several(); }

 private:
  ModuleReplicas replicas_;
};

/// One process per machine with dp's replicas on its devices; ddp averages gradients between the machines.
class Ddp2 final : public Ddp {
 public:
  Ddp2(World& world, const std::vector<Device>& devices)
      : Ddp(world, devices[0], /*find_unused=*/false), replicas_(devices) {}
  std::string name() const override { return "ddp2"; }
  void setup(nn::Module& module) override {
    Ddp::setup(module);
    replicas_.setup(module, name());
  }
  Replicas* replicas() override { return replicas_.if_several(); }
  bool syncs_logs() const override { return false; }

 private:
  ModuleReplicas replicas_;
};

}  // namespace

std::unique_ptr<Strategy> make_dp(const StrategyChoice& choice) { return std::make_unique<Dp>(choice.devices); }

std::unique_ptr<Strategy> make_ddp2(const StrategyChoice& choice) {
  return std::make_unique<Ddp2>(choice.world(), choice.devices);
}

}  // namespace levin
