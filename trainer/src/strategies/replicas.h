#pragma once
// Copies of a module on the devices of one process.

#include <levin/distributed/data_parallel.h>
#include <levin/trainer/strategy.h>

namespace levin {

class ModuleReplicas {
 public:
  explicit ModuleReplicas(std::vector<Device> devices) : devices_(std::move(devices)) {}
  std::size_t size() const { return devices_.size(); }
  /// Makes the replicas of a module on the first device. A module that can be reconstructed (nn::Module::fresh) has its
  /// replicas run in parallel on threads; otherwise the module itself acts as each replica in turn. Throws UsageError
  /// for one that has no steps.
  void setup(nn::Module& module, const std::string& strategy);
  /// Implements Strategy::on_replicas. Throws UsageError for a batch that states its number of samples, since its rows
  /// are not samples.
  std::vector<Tensor> run(LevinModule& module, const Batch& batch, const Strategy::ReplicaStep& step);

 private:
  std::vector<Device> devices_;
  std::unique_ptr<distributed::DataParallel> parallel_;
};

}  // namespace levin
