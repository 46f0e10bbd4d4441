#include <levin/trainer/checkpoint/load_from_checkpoint.h>

#include <fmt/format.h>

#include "src/logging.h"

namespace levin::detail {

std::string describe(const nn::LoadReport& report) {
  std::string out;
  if (!report.missing.empty()) out = fmt::format("not in the checkpoint: {}", fmt::join(report.missing, ", "));
  if (!report.unexpected.empty())
    out += fmt::format("{}not in this network: {}", out.empty() ? "" : "; ", fmt::join(report.unexpected, ", "));
  return out;
}

void load_checkpoint(nn::Module& module, const Checkpoint& c, const nn::LoadOptions& options,
                     const std::filesystem::path& folder) {
  if (auto* lit = dynamic_cast<LevinModule*>(&module)) {
    StateMap hparams = c.hparams();
    for (const auto& [name, value] : lit->hparams().values()) hparams.set(name, value);
    lit->save_hyperparameters(hparams);
    lit->on_load_checkpoint(c.values.part("user"));
  }
  try {
    const nn::LoadReport report = module.load_state_dict(c.model, options);
    if (const auto text = describe(report); !text.empty()) logging::warn("{}: {}", folder.string(), text);
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} belongs to another network: {}", folder.string(), e.what()));
  }
}

}  // namespace levin::detail
