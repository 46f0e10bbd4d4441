#include "src/checkpoint/fit_checkpoint.h"

#include <levin/core/warning.h>
#include <levin/trainer/checkpoint/load_from_checkpoint.h>

#include <fmt/format.h>

#include "src/checkpoint/checkpoint_values.h"
#include "src/checkpoint/full_state_dict.h"
#include "src/launch/slurm.h"
#include "src/logging.h"

namespace levin {
namespace {

namespace fs = std::filesystem;

template <class F>
void each_policy(const std::vector<CallbackPtr>& callbacks, const F& f) {
  for (const auto& c : callbacks)
    if (auto* policy = dynamic_cast<CheckpointPolicy*>(c.get())) f(*policy);
}

void check_place(const Checkpoint& c, const Run& run, const fs::path& folder) {
  const auto place = TrainState::from_map(c.values.part("loop"));
  const std::int64_t done = place.epoch + (place.epoch_complete ? 1 : 0), max = run.max_epochs;
  if (max >= 0 && done > max)
    throw UsageError(fmt::format("[fit] {} has finished {} epochs, but max_epochs is {}. Give at least as many.",
                                 folder.string(), done, max));
}

void check_precision(const Checkpoint& c, const PrecisionPlugin& precision, const fs::path& folder) {
  const auto saved = c.values.get<std::string>("precision_name");
  if (saved != precision.name())
    throw StateError(fmt::format("[checkpoint] {} was trained with --precision {}, this run has {}. Use the same.",
                                 folder.string(), saved, precision.name()));
}

}  // namespace

fs::path find_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& which) {
  fs::path found;
  each_policy(callbacks, [&](const CheckpointPolicy& policy) {
    if (found.empty()) found = policy.find(which);
  });
  return found;
}

namespace {

/// Returns the folder of "last" or "best"; empty if there is none.
fs::path find_named(const std::vector<CallbackPtr>& callbacks, const std::string& ckpt) {
  fs::path found = find_checkpoint(callbacks, ckpt);
  if (!found.empty()) return found;
  each_policy(callbacks, [&](const CheckpointPolicy& policy) {
    if (!fs::exists(fs::path(policy.directory()) / ckpt)) return;
    const auto folder = fs::canonical(fs::path(policy.directory()) / ckpt);
    if (found.empty() || (ckpt == "last" && last_write_time(folder) > last_write_time(found))) found = folder;
  });
  return found;
}

}  // namespace

fs::path resolve_checkpoint(const std::vector<CallbackPtr>& callbacks, const std::string& ckpt) {
  if (ckpt != "last" && ckpt != "best") return ckpt;
  const fs::path found = find_named(callbacks, ckpt);
  if (found.empty())
    throw IoError(fmt::format("[trainer] there is no checkpoint \"{}\" to load. Train first, or give a folder.", ckpt));
  return found;
}

fs::path of_rank_zero(Run& run, const std::function<fs::path()>& find) {
  StateMap found;
  if (run.strategy->is_global_zero()) found.set("path", find().string());
  return run.strategy->broadcast(found, 0).get<std::string>("path");
}

fs::path choose_checkpoint(const Run& run, const std::string& ckpt) {
  each_policy(run.callbacks, [](const CheckpointPolicy& policy) { recover_checkpoints(policy.directory()); });
  // A program that is restarted by the same command has no checkpoint at its first start.
  if (ckpt == "last" && find_named(run.callbacks, ckpt).empty()) {
    logging::warn("there is no checkpoint \"last\" yet: training starts from scratch");
    return {};
  }
  if (!ckpt.empty()) return resolve_checkpoint(run.callbacks, ckpt);
  fs::path offered;
  if (run.config.handle_signals && slurm::job_id()) {
    recover_checkpoints(run.root_dir);
    offered = slurm::newest_checkpoint(run.root_dir);
  }
  each_policy(run.callbacks, [&](const CheckpointPolicy& policy) {
    if (offered.empty()) offered = policy.resume_from();
  });
  if (!offered.empty()) logging::info("resumes from {}", offered.string());
  return offered;
}

Checkpoint load_for_fit(Run& run, const fs::path& folder) {
  Checkpoint c = read_checkpoint(folder);
  if (c.weights_only())
    throw StateError(
        fmt::format("[fit] {} has weights only, no state of an optimizer. Load it by load_from_checkpoint and start a "
                    "new training, or resume from a full checkpoint.",
                    folder.string()));
  check_precision(c, *run.precision, folder);
  check_place(c, run, folder);
  load_weights(run, trained_weights(c), folder);
  const StateMap user = c.values.part("user");
  run.module_do(&LevinModule::on_load_checkpoint, user);
  run.callbacks_do(&Callback::on_load_checkpoint, user);
  restore_callbacks(run, c, folder);
  return c;
}

void load_weights(Run& run, const StateDict& weights, const fs::path& folder) {
  LevinModule& module = run.module;
  StateDict fitting;
  nn::LoadReport report;
  if (!module.strict_loading) fitting = fitting_weights(*run.strategy, *run.precision, module, weights, report);
  try {
    const StateDict& whole = module.strict_loading ? weights : fitting;
    report.converted = load_full_state_dict(*run.strategy, *run.precision, module, whole);
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} belongs to another network: {}", folder.string(), e.what()));
  }
  if (const auto text = detail::describe(report); !text.empty()) warn(fmt::format("{}: {}", folder.string(), text));
}

}  // namespace levin
