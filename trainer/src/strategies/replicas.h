#pragma once
// The copies of a module on the devices of one process.

#include <levin/distributed/data_parallel.h>
#include <levin/trainer/strategy.h>

namespace levin {

class ModuleReplicas {
 public:
  explicit ModuleReplicas(std::vector<Device> devices) : devices_(std::move(devices)) {}
  std::size_t size() const { return devices_.size(); }
  /// The module lies on the first device. One that can be built again (nn::Module::fresh) has its replicas side by side
  /// on threads, another is each of them in turn. Throws UsageError for one that has no steps.
  void setup(nn::Module& module, const std::string& strategy);
  /// Strategy::on_replicas. Throws UsageError for a batch that says its number of samples itself: its rows are others.
  std::vector<Tensor> run(LevinModule& module, const Batch& batch, const Strategy::ReplicaStep& step);

 private:
  std::vector<Device> devices_;
  std::unique_ptr<distributed::DataParallel> parallel_;
};

}  // namespace levin
