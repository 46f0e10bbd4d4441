#include "src/checkpoint/checkpoint_values.h"

#include <fmt/format.h>

#include <map>

namespace levin {
namespace {

/// Returns keys such as "EarlyStopping/val_loss", with "#1" appended to the second of that name.
std::vector<std::string> keys_of(const std::vector<CallbackPtr>& callbacks) {
  std::vector<std::string> keys;
  std::map<std::string, int> seen;
  for (const auto& c : callbacks) {
    std::string key = c->state_key();
    if (const int before = seen[key]++; before > 0) key += fmt::format("#{}", before);
    keys.push_back(std::move(key));
  }
  return keys;
}

/// Selects the values that a weights-only checkpoint keeps.
StateMap weights_only_values(const StateMap& values) {
  StateMap out;
  for (const char* part : {"loop", "hparams", "user"}) out.put(part, values.part(part));
  for (const char* name : {"precision_name", "simd_target"}) out.set(name, values.get<std::string>(name));
  out.set("weights_only", std::int64_t{1});
  return out;
}

}  // namespace

void save_callbacks(Checkpoint& c, const std::vector<CallbackPtr>& callbacks) {
  const auto keys = keys_of(callbacks);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const StateMap s = callbacks[i]->state(); !s.empty()) c.values.put("callbacks/" + keys[i], s);
    c.tensors.merge("callback." + keys[i] + ".", callbacks[i]->tensors());
  }
}

void restore_callbacks(Run& run, const Checkpoint& c, const std::filesystem::path& folder) {
  try {
    run.state = TrainState::from_map(c.values.part("loop"));
    const StateMap states = c.values.part("callbacks");
    const auto keys = keys_of(run.callbacks);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const StateMap s = states.part(keys[i]); !s.empty()) run.callbacks[i]->load_state(s);
      if (const StateDict t = c.tensors.sub("callback." + keys[i] + "."); !t.empty()) run.callbacks[i]->load_tensors(t);
    }
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} does not fit this run: {}", folder.string(), e.what()));
  }
}

StateDict trained_weights(const Checkpoint& c) {
  const StateDict trained = c.tensors.sub("model.");
  return trained.empty() ? c.model : trained;
}

void keep_weights_only(Checkpoint& c) {
  c.tensors = {};
  c.values = weights_only_values(c.values);
  std::erase_if(c.shards, [](const distributed::Shard& s) { return !s.name.starts_with("model."); });
}

}  // namespace levin
