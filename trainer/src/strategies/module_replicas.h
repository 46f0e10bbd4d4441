#pragma once
// The Replicas of dp and ddp2.

#include <levin/distributed/data_parallel.h>
#include <levin/trainer/strategies/replicas.h>

namespace levin {

class ModuleReplicas final : public Replicas {
 public:
  explicit ModuleReplicas(std::vector<Device> devices) : devices_(std::move(devices)) {}
  std::size_t size() const override { return devices_.size(); }
  /// Returns null for one device, on which the module itself runs.
  Replicas* if_several() { return size() > 1 ? this : nullptr; }
  /// Makes the replicas of a module on the first device. A module that can be reconstructed (nn::Module::fresh) has its
  /// replicas run in parallel on threads; otherwise the module itself acts as each replica in turn. Throws UsageError
  /// for one that has no steps.
  void setup(nn::Module& module, const std::string& strategy);
  std::vector<Tensor> run(const Batch& batch, const Step& step) override;

 private:
  std::vector<Device> devices_;
  std::unique_ptr<distributed::DataParallel> parallel_;
};

}  // namespace levin
