#include "src/strategies/ddp.h"
#include "src/strategies/replicas.h"
#include "src/strategies/strategies.h"

namespace levin {
namespace {

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
  std::size_t replicas() const override { return replicas_.size(); }
  std::vector<Tensor> on_replicas(LevinModule& module, const Batch& batch, const ReplicaStep& step) override {
    return replicas_.run(module, batch, step);
  }
  bool shares_logs() const override { return false; }

 private:
  ModuleReplicas replicas_;
};

}  // namespace

std::unique_ptr<Strategy> make_ddp2(const StrategyChoice& choice) {
  return std::make_unique<Ddp2>(choice.world(), choice.devices);
}

}  // namespace levin
