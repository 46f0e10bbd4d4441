#include "src/checkpoint/checkpoint_migration.h"

#include <filesystem>

namespace levin {
namespace {

/// Version 1 supported one optimizer, and one rule in ModelCheckpoint.
StateMap model_checkpoint_from_1(const StateMap& old) {
  const auto names = old.get<std::vector<std::string>>("names");
  const auto dir = old.get<std::string>("dir");
  const auto last = old.get<std::string>("last");
  StateMap s;
  s.set("dirpath", dir);
  s.set("best_model_path", names.empty() ? std::string() : (std::filesystem::path(dir) / names.front()).string());
  s.set("rule0/best_k_models", names);
  s.set("rule0/best_k_scores", old.get<std::vector<double>>("scores"));
  s.set("rule0/deferred", std::int64_t{0});
  s.set("last_model", last);
  s.set("last_saved", last);
  s.set("last_global_step_saved", old.get<std::int64_t>("last_step"));
  s.set("validated", std::int64_t{1});
  return s;
}

StateMap values_from_1(const StateMap& old) {
  std::vector<std::string> policies;
  for (const auto& [key, value] : old.values())
    if (key.starts_with("callbacks/ModelCheckpoint/") && key.ends_with("/last_step"))
      policies.push_back(key.substr(0, key.size() - std::string("/last_step").size()));
  StateMap out;
  for (const auto& [key, value] : old.values()) {
    bool moved = false;
    for (const auto& policy : policies) moved = moved || key.starts_with(policy + "/");
    if (!moved) out.set(key, value);
  }
  out.set("loop/optimizer_steps", std::vector<std::int64_t>{old.get<std::int64_t>("loop/optimizer_steps")});
  out.set("loop/eval_loader", std::int64_t{0});
  out.set("loop/eval_batch", std::int64_t{0});
  for (const auto& policy : policies) out.put(policy, model_checkpoint_from_1(old.part(policy)));
  return out;
}

}  // namespace

void migrate(Checkpoint& c, int version) {
  if (version < 2) c.values = values_from_1(c.values);
}

}  // namespace levin
