#include <levin/trainer/strategy.h>

namespace levin {
namespace {

/// One process on the CPU.
class SingleDevice final : public Strategy {
 public:
  std::string name() const override { return "single"; }
  Device device() const override { return kCpu; }
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  void setup(nn::Module& module) override { module.to(kCpu); }
  Batch to_device(Batch batch) const override { return batch; }
  void no_sync(bool) override {}
  void finish_reduction() override {}
  double reduce(double value, ReduceOp) override { return value; }
  void barrier() override {}
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(const std::string& name) {
  if (name == "auto" || name == "single") return std::make_unique<SingleDevice>();
  throw UsageError("--strategy " + name + ": this build has one process on one device. Use --strategy single.");
}

}  // namespace levin
