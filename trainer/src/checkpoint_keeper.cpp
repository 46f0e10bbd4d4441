#include "checkpoint_keeper.h"

#include <levin/core/io.h>
#include <levin/kernels/simd_target.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

namespace levin {
namespace {

StateMap to_map(const GeneratorState& s) {
  StateMap m;
  m.set("seed", static_cast<std::int64_t>(s.seed));
  m.set("offset", static_cast<std::int64_t>(s.offset));
  return m;
}

GeneratorState generator_state(const StateMap& m) {
  return {static_cast<std::uint64_t>(m.get<std::int64_t>("seed")),
          static_cast<std::uint64_t>(m.get<std::int64_t>("offset"))};
}

/// "EarlyStopping/val_loss", and "#1" behind the second of that name.
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

}  // namespace

void load_weights(Precision& precision, nn::Module& module, const StateDict& weights,
                  const std::filesystem::path& folder) {
  try {
    precision.load_weights(module, weights);
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} holds another network than this one: {}", folder.string(), e.what()));
  }
}

void check_precision(const Checkpoint& c, const Precision& precision, const std::filesystem::path& folder) {
  const auto saved = c.values.get<std::string>("precision_name");
  if (saved != precision.name())
    throw StateError(fmt::format("[checkpoint] {} was trained with --precision {}, this run has {}. Use the same.",
                                 folder.string(), saved, precision.name()));
}

CheckpointKeeper::CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data)
    : run_(run), optimizers_(optimizers), runner_(runner), data_(data) {
  for (const auto& c : run.callbacks)
    if (auto* policy = dynamic_cast<CheckpointPolicy*>(c.get())) policies_.push_back(policy);
}

template <class F>
std::filesystem::path CheckpointKeeper::ask(CheckpointPolicy& policy, const F& decide) {
  const StateMap before = policy.state();
  std::filesystem::path saved;
  try {
    for (const auto& action : decide()) {
      perform(action);
      if (action.kind == CheckpointAction::Kind::save) saved = action.path;
    }
  } catch (const IoError&) {
    policy.load_state(before);
    throw;
  }
  return saved;
}

void CheckpointKeeper::save_point(SavePoint point) {
  run_.state.point = point;
  if (run_.config.fast_dev_run > 0) return;
  for (auto* policy : policies_) ask(*policy, [&] { return policy->decide(run_.context, point); });
}

std::filesystem::path CheckpointKeeper::save_interrupted() {
  std::filesystem::path saved;
  if (run_.config.fast_dev_run > 0) return saved;
  for (auto* policy : policies_) {
    const auto path = ask(*policy, [&] { return policy->decide_interrupted(run_.context); });
    if (saved.empty()) saved = path;
  }
  return saved;
}

void CheckpointKeeper::perform(const CheckpointAction& action) {
  switch (action.kind) {
    case CheckpointAction::Kind::save: {
      const ProfileScope scope("save_checkpoint", Phase::checkpoint);
      write_checkpoint(action.path, snapshot());
      break;
    }
    case CheckpointAction::Kind::point: io::write_pointer(action.path, action.target); break;
    case CheckpointAction::Kind::remove:
      if (std::filesystem::exists(action.path / "state.json")) std::filesystem::remove_all(action.path);
      break;
  }
}

StateMap CheckpointKeeper::callback_states(StateDict& tensors) const {
  StateMap out;
  const auto keys = keys_of(run_.callbacks);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const StateMap s = run_.callbacks[i]->state(); !s.empty()) out.put(keys[i], s);
    tensors.merge("callback." + keys[i] + ".", run_.callbacks[i]->tensors());
  }
  return out;
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

Checkpoint CheckpointKeeper::snapshot() {
  runner_.settle(run_.state);
  Checkpoint c;
  c.model = run_.precision.weights(run_.module);
  bool replaced = false;
  for (const auto& callback : run_.callbacks) replaced = callback->on_save_weights(run_.context, c.model) || replaced;
  if (replaced) c.tensors.merge("model.", run_.precision.weights(run_.module));
  c.tensors.merge("optimizer.", optimizers_.optimizer_state());
  c.tensors.merge("scheduler.", optimizers_.scheduler_state());
  if (run_.state.window_nominal > 0) {
    for (const auto& [name, p] : run_.module.named_parameters())
      if (p.grad().defined()) c.tensors.merge("grad.", {{name, p.grad()}});
  }
  StateMap& v = c.values;
  v.put("loop", run_.state.to_map());
  v.put("loader", (run_.train_place ? *run_.train_place : data_.train->state()).to_map());
  v.put("rng", to_map(default_generator().state()));
  v.put("metrics", run_.metrics.state());
  v.put("precision", run_.precision.state());
  v.put("callbacks", callback_states(c.tensors));
  v.set("precision_name", run_.precision.name());
  v.set("simd_target", std::string(kernels::cpu::simd_target()));
  StateMap user;
  for (const auto& callback : run_.callbacks) callback->on_save_checkpoint(run_.context, user);
  run_.module.on_save_checkpoint(user);
  v.put("user", user);
  return c;
}

void CheckpointKeeper::restore(const Checkpoint& c, const std::filesystem::path& folder) {
  const StateMap& v = c.values;
  runner_.take_parameters();
  try {
    optimizers_.load_optimizer_state(c.tensors.sub("optimizer."));
    optimizers_.load_scheduler_state(c.tensors.sub("scheduler."));
    const auto place = data::LoaderState::from_map(v.part("loader"));
    // An epoch that is over leaves its loader at its end: the next walk is a new epoch.
    data_.train->load_state(run_.state.epoch_complete ? place.at_epoch(place.epoch + 1) : place);
    run_.metrics.load_state(v.part("metrics"));
    run_.precision.load_state(v.part("precision"));
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} does not fit this run: {}", folder.string(), e.what()));
  }
  for (const auto& [name, p] : run_.module.named_parameters())
    if (const Tensor* grad = c.tensors.find("grad." + name)) p.set_grad(*grad);
  default_generator().set_state(generator_state(v.part("rng")));
  if (const auto target = v.get<std::string>("simd_target"); target != kernels::cpu::simd_target())
    spdlog::warn("{} was written with {} instructions and goes on with {}: the bits may differ by rounding",
                 folder.string(), target, kernels::cpu::simd_target());
}

}  // namespace levin
