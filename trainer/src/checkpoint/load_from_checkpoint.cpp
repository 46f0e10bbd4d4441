#include <levin/trainer/checkpoint/load_from_checkpoint.h>

#include <levin/core/warning.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace levin::detail {

std::string describe(const nn::LoadReport& report) {
  std::vector<std::string> parts;
  if (!report.missing.empty())
    parts.push_back(fmt::format("not in the checkpoint: {}", fmt::join(report.missing, ", ")));
  if (!report.unexpected.empty())
    parts.push_back(fmt::format("not in this network: {}", fmt::join(report.unexpected, ", ")));
  if (const std::size_t n = report.converted.size(); n > 0)
    parts.push_back(fmt::format("{} {} converted to the network's dtype: {}{}", n, n == 1 ? "tensor" : "tensors",
                                report.converted[0], n == 1 ? "" : ", ..."));
  return fmt::format("{}", fmt::join(parts, "; "));
}

void load_checkpoint(nn::Module& module, const Checkpoint& c, const nn::LoadOptions& options,
                     const std::string& folder) {
  if (auto* lit = dynamic_cast<LevinModule*>(&module)) {
    StateMap hparams = c.hparams();
    for (const auto& [name, value] : lit->hparams().values()) hparams.set(name, value);
    lit->save_hyperparameters(hparams);
    lit->on_load_checkpoint(c.values.part("user"));
  }
  try {
    const nn::LoadReport report = module.load_state_dict(c.model, options);
    if (const auto text = describe(report); !text.empty()) warn(fmt::format("{}: {}", folder, text));
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} belongs to another network: {}", folder, e.what()));
  }
}

}  // namespace levin::detail
