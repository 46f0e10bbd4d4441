#include "src/strategies/module_replicas.h"

#include <levin/trainer/module.h>

#include <fmt/format.h>

#include "src/strategies/batch_rows.h"

namespace levin {

void ModuleReplicas::setup(nn::Module& module, const std::string& strategy) {
  if (dynamic_cast<LevinModule*>(&module) == nullptr)
    throw UsageError(
        fmt::format("[fabric] --strategy {} runs the steps of a LevinModule, and a {} has none. Wrap it by "
                    "distributed::DataParallel.",
                    strategy, module.type_name()));
  parallel_.reset();
  if (size() == 1) return;
  const bool side_by_side = [&] {
    const nn::Cloner without_random_numbers;
    return module.fresh() != nullptr;
  }();
  using distributed::DataParallel;
  parallel_ = std::make_unique<DataParallel>(side_by_side ? DataParallel(module, devices_)
                                                          : DataParallel::in_turns(module, devices_));
}

std::vector<Tensor> ModuleReplicas::run(const Batch& batch, const Step& step) {
  refuse_stated_samples(batch, "dp");
  std::vector<Tensor> inputs;
  for (const Tensor& t : batch.tensors)
    if (t.defined()) inputs.push_back(t);
  return parallel_->run(inputs, [&](std::size_t number, nn::Module& replica, const std::vector<Tensor>& tensors) {
    Batch part = batch;
    auto next = tensors.begin();
    for (Tensor& t : part.tensors)
      if (t.defined()) t = *next++;
    return step(number, static_cast<LevinModule&>(replica), part);
  });
}

}  // namespace levin
