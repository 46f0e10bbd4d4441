#include "src/checkpoint/checkpoint_keeper.h"

#include <levin/autograd/ops.h>
#include <levin/core/io.h>
#include <levin/kernels/kernel.h>
#include <levin/trainer/strategies/stages.h>

#include <fmt/format.h>

#include <algorithm>

#include "src/checkpoint/checkpoint_shards.h"
#include "src/checkpoint/checkpoint_values.h"
#include "src/checkpoint/fit_checkpoint.h"
#include "src/checkpoint/full_state_dict.h"
#include "src/checkpoint/generator_map.h"
#include "src/launch/slurm.h"
#include "src/logging.h"

namespace levin {
namespace {

/// Key of the values that a rank other than zero adds.
std::string rank_key(std::size_t rank) { return fmt::format("rank{}", rank); }

}  // namespace

CheckpointKeeper::CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data)
    : run_(run),
      optimizers_(optimizers),
      runner_(runner),
      data_(data),
      writer_(run.config.async_checkpoints && !saves_shards(*run.strategy)) {
  for (const auto& c : run.callbacks)
    if (auto* policy = dynamic_cast<CheckpointPolicy*>(c.get())) policies_.push_back(policy);
  mark(run.state.point);
}

// --- asking the policies, writing

void CheckpointKeeper::failed(CheckpointPolicy& policy, const StateMap& before, const IoError& error) {
  policy.load_state(before);
  if (!policy.continues_on_error()) throw error;
  logging::warn("training continues without a checkpoint: {}", error.what());
}

/// Waits for the checkpoint being written and reports its result.
void CheckpointKeeper::collect() {
  if (!writer_.is_writing()) return;
  try {
    writer_.wait();
  } catch (const IoError& e) {
    failed(*writing_for_, before_writing_, e);
  }
}

/// Rank zero decides and writes. The other ranks contribute or write their part, and then receive the policy's state.
template <class F>
std::filesystem::path CheckpointKeeper::ask(CheckpointPolicy& policy, const F& decide) {
  const bool writes = run_.strategy->is_global_zero();
  if (writes) collect();
  StateMap before = policy.state(), plan;
  std::vector<CheckpointAction> actions;
  if (writes) {
    actions = decide();
    std::vector<std::int64_t> kinds;
    std::vector<std::string> paths;
    for (const auto& action : actions)
      if (action.kind == CheckpointAction::Kind::save) {
        kinds.push_back(action.weights_only);
        paths.push_back(action.path);
      }
    plan.set("saved", paths);
    plan.set("weights_only", kinds);
    plan.put("policy", policy.state());
  }
  plan = run_.strategy->broadcast(plan, 0);
  if (!writes) policy.load_state(plan.part("policy"));
  std::shared_ptr<EncodedCheckpoint> contents;
  const auto saved = plan.get<std::vector<std::string>>("saved");
  const auto weights_only = plan.get<std::vector<std::int64_t>>("weights_only");
  for (std::size_t i = 0; i < saved.size(); ++i) {
    const ProfileScope scope("save_checkpoint", Phase::checkpoint);
    const Checkpoint state = snapshot({.weights_only = weights_only[i] != 0});
    if (saves_shards(*run_.strategy)) {
      if (!write_part(policy, saved[i], state, before)) return {};
    } else if (writes) {
      contents = std::make_shared<EncodedCheckpoint>(encode_checkpoint(state));
    }
  }
  const std::filesystem::path last = saved.empty() ? std::string() : saved.back();
  return !writes || write(policy, std::move(actions), std::move(contents), std::move(before)) ? last
                                                                                              : std::filesystem::path();
}

/// Writes each rank's part now; if one rank fails, all of them fail.
bool CheckpointKeeper::write_part(CheckpointPolicy& policy, const std::filesystem::path& path, const Checkpoint& state,
                                  const StateMap& before) {
  try {
    write_checkpoint(*run_.strategy, path, state);
  } catch (const IoError& e) {
    failed(policy, before, e);
    return false;
  }
  return true;
}

/// Returns false if it failed and training continues. Without `contents` the checkpoint is already written.
bool CheckpointKeeper::write(CheckpointPolicy& policy, std::vector<CheckpointAction> list,
                             std::shared_ptr<EncodedCheckpoint> contents, StateMap before) {
  using Kind = CheckpointAction::Kind;
  if (list.empty()) return true;
  const auto actions = std::make_shared<std::vector<CheckpointAction>>(std::move(list));
  try {
    writer_.run([actions, contents] {
      for (const auto& action : *actions) {
        if (action.kind == Kind::save && contents) write_checkpoint(action.path, *contents);
        if (action.kind == Kind::point) io::write_pointer(action.path, action.target);
        if (action.kind == Kind::remove) remove_checkpoint(action.path);
      }
    });
    writing_for_ = &policy;
    before_writing_ = std::move(before);
  } catch (const IoError& e) {
    failed(policy, before, e);
    return false;
  }
  return true;
}

void CheckpointKeeper::mark(SavePoint point) {
  run_.state.point = point;
  mark_.state = run_.state;
  mark_.rng = default_generator().state();
  if (data_.train) mark_.train = train_place();
  mark_.val.resize(data_.val.size());
  for (std::size_t i = 0; i < data_.val.size(); ++i) mark_.val[i] = data_.val[i].state();
}

void CheckpointKeeper::save_point(SavePoint point) {
  mark(point);
  due_.clear();
  for (auto* policy : policies_) {
    const bool decides = run_.strategy->is_global_zero() && run_.config.fast_dev_run == 0;
    due_.push_back(decides && policy->due(run_, point) ? 1 : 0);
  }
  run_.agree(due_);
  for (std::size_t i = 0; i < due_.size(); ++i)
    if (due_[i] != 0) ask(*policies_[i], [&] { return policies_[i]->decide(run_, point); });
  const auto set = [](std::uint8_t flag) { return flag != 0; };
  if (std::any_of(due_.begin(), due_.end(), set)) run_.agree();  // a signal may have arrived during the write
}

std::filesystem::path CheckpointKeeper::save_interrupted() {
  std::filesystem::path saved;
  if (run_.config.fast_dev_run > 0) return saved;
  for (auto* policy : policies_) {
    const auto path = ask(*policy, [&] { return policy->decide_interrupted(run_); });
    if (saved.empty()) saved = path;
  }
  collect();
  run_.strategy->barrier();
  return saved;
}

void CheckpointKeeper::save_exception() noexcept {
  alone_ = true;  // other ranks have ended, or are about to
  if (run_.strategy->sharded_optimizer() && run_.strategy->world_size() > 1) return;  // with their shards of the state
  if (run_.config.fast_dev_run > 0 || run_.sanity_checking || !run_.strategy->is_global_zero()) return;
  const auto guarded = [](const auto& f) {
    try {
      f();
    } catch (const std::exception& e) {
      logging::warn("no checkpoint was saved after the error: {}", e.what());
    }
  };
  for (auto* policy : policies_)
    guarded([&] {
      collect();
      const StateMap before = policy->state();
      const auto actions = policy->decide_exception(run_);
      auto contents = std::make_shared<EncodedCheckpoint>();
      for (const auto& action : actions)
        if (action.kind == CheckpointAction::Kind::save)
          *contents = encode_checkpoint(snapshot({.weights_only = action.weights_only}));
      write(*policy, actions, contents, before);
    });
  guarded([&] { collect(); });
}

std::filesystem::path CheckpointKeeper::save_for_requeue() {
  collect();
  const auto& root = run_.root_dir;
  const auto former = slurm::newest_checkpoint(root), path = slurm::next_checkpoint(root);
  save(path, {});
  if (run_.strategy->is_global_zero() && !former.empty()) remove_checkpoint(former);
  return path;
}

void CheckpointKeeper::save(const std::filesystem::path& path, const Snapshot& what) {
  write_checkpoint(*run_.strategy, path, snapshot(what));
}

void CheckpointKeeper::finish() {
  if (run_.config.fast_dev_run > 0) return;
  for (auto* policy : policies_) ask(*policy, [&] { return policy->decide_finished(run_); });
  collect();
  run_.strategy->barrier();  // the checkpoint exists before fit returns on any rank
  if (!run_.config.handle_signals || !slurm::job_id() || !run_.strategy->is_global_zero()) return;
  if (const auto former = slurm::newest_checkpoint(run_.root_dir); !former.empty()) remove_checkpoint(former);
}

// --- collecting and restoring state

/// Position after the current batch, if the loop had to fetch the next one already.
data::LoaderState CheckpointKeeper::train_place() const {
  return run_.train_place ? *run_.train_place : data_.train->state();
}

/// Returns the last mark, unless more batches have been finished since.
CheckpointKeeper::Mark CheckpointKeeper::place() const {
  const TrainState& s = run_.state;
  Mark at = mark_;
  if (s.epoch != at.state.epoch || s.batch != at.state.batch) {
    at.state = s;
    at.train = train_place();
    at.rng = default_generator().state();
  }
  at.state.optimizer_steps = s.optimizer_steps;
  // A loader at the end of its epoch continues with the next epoch.
  const auto onward = [](data::LoaderState& l) {
    if (l.batches > 0) l = l.at_epoch(l.epoch + 1);
  };
  if (at.state.batch == 0 && !at.state.epoch_complete) onward(at.train);
  for (std::size_t i = 0; i < at.val.size(); ++i)
    if (at.state.point != SavePoint::validation_batch_end || at.state.eval_loader != static_cast<std::int64_t>(i))
      onward(at.val[i]);
  return at;
}

Checkpoint CheckpointKeeper::snapshot(const Snapshot& what) {
  const auto [weights_only, with_hooks] = what;
  runner_.settle(run_.state);
  const Mark at = place();
  Checkpoint c;
  const auto of_all = [&](const StateDict& own) { return alone_ ? own : consensus(*run_.strategy, own); };
  const bool in_shards = saves_shards(*run_.strategy), has_full = !in_shards || !run_.strategy->sharded_weights();
  if (has_full) c.model = run_.weights();
  bool replaced = false;
  for (const auto& callback : run_.callbacks) replaced = callback->on_save_weights(run_, c.model) || replaced;
  if (replaced && !has_full)
    throw UsageError(
        "[checkpoint] a callback replaces its weights, and no rank has all of them. Use --fsdp-state-dict-type full.");
  c.model = of_all(c.model);
  StateMap& v = c.values;
  v.put("loop", at.state.to_map());
  v.put("hparams", run_.module.hparams());
  v.set("precision_name", run_.precision->name());
  v.set("simd_target", std::string(kernels::cpu::simd_target()));
  if (!weights_only) {
    if (replaced) c.tensors.merge("model.", of_all(run_.weights()));
    save_training(c, at);
  }
  if (with_hooks) {
    if (!weights_only) save_callbacks(c, run_.callbacks);
    v.put("user", run_.user_state());
  }
  if (weights_only) keep_weights_only(c);
  if (in_shards) add_shards(c, "model.", weight_shards(*run_.strategy, run_.module, std::exchange(c.model, {})));
  return c;
}

/// Adds the state needed to resume training, besides the weights.
void CheckpointKeeper::save_training(Checkpoint& c, const Mark& at) {
  if (saves_shards(*run_.strategy))
    add_shards(c, "optimizer.", run_.strategy->sharded_optimizer()->optimizer_shards(optimizers_));
  else
    c.tensors.merge("optimizer.", full_optimizer_state(*run_.strategy, optimizers_));
  c.tensors.merge("scheduler.", optimizers_.scheduler_state());
  const int ranks = run_.strategy->data_ranks();
  const bool open_window = at.state.window_nominal > 0;
  if (open_window && (alone_ || ranks == 1)) {
    StateDict own;
    for (const auto& [name, p] : run_.module.named_parameters())
      if (p.grad().defined()) own.set(name, p.grad());
    const Stages* const stages = run_.strategy->stages();
    c.tensors.merge("grad.", stages ? stages->gather_state_dict(own) : own);
  }
  StateMap& v = c.values;
  v.put("precision", run_.precision->state());
  if (const StateMap s = run_.strategy->state(); !s.empty()) v.put("strategy", s);
  if (ranks > 1) v.set("world_size", static_cast<std::int64_t>(ranks));
  StateMap own;
  own.put("loader", at.train.to_map());
  for (std::size_t i = 0; i < at.val.size(); ++i) own.put(fmt::format("val_loader{}", i), at.val[i].to_map());
  own.put("rng", to_map(at.rng));
  own.put("metrics", run_.metrics.state());
  if (alone_ || ranks == 1) {
    for (const auto& [key, value] : own.values()) v.set(key, value);
    return;
  }
  save_of_ranks(c, own, open_window);
}

/// Adds state that differs between ranks: rank zero's under its plain names, the others' under "rank<r>".
void CheckpointKeeper::save_of_ranks(Checkpoint& c, const StateMap& own, bool open_window) {
  const auto all = run_.strategy->gather(own);
  for (const auto& [key, value] : all[0].values()) c.values.set(key, value);
  for (std::size_t r = 1; r < all.size(); ++r) c.values.put(rank_key(r), all[r]);
  if (run_.strategy->divergent_weights()) save_replicas(c);
  if (!open_window) return;
  const auto rank = static_cast<std::size_t>(run_.strategy->rank());
  for (const auto& [name, p] : run_.module.named_parameters()) {
    if (!p.requires_grad()) continue;
    const Tensor grad = p.grad().defined() ? p.grad() : zeros(p.sizes(), like(p));
    if (saves_shards(*run_.strategy)) {
      add_shards(c, rank == 0 ? "grad." : rank_key(rank) + ".grad.", {{name, grad, 0, grad.sizes()}});
      continue;
    }
    const Tensor grads = run_.strategy->all_gather(grad, false);
    c.tensors.merge("grad.", {{name, grads.select(0, 0)}});
    for (std::size_t r = 1; r < all.size(); ++r)
      c.tensors.merge(fmt::format("{}.grad.", rank_key(r)), {{name, grads.select(0, static_cast<int>(r))}});
  }
}

/// Adds the weights of all ranks and the optimizers of ranks above zero.
void CheckpointKeeper::save_replicas(Checkpoint& c) {
  StateDict own;
  own.merge("model.", run_.weights());
  own.merge("optimizer.", optimizers_.optimizer_state());
  for (const auto& [name, t] : own) {
    const Tensor all = run_.strategy->all_gather(t, false);
    for (int r = name.starts_with("model.") ? 0 : 1; r < run_.strategy->world_size(); ++r)
      c.tensors.merge(rank_key(static_cast<std::size_t>(r)) + ".", {{name, all.select(0, r)}});
  }
}

/// Restores replicas; with a different number of ranks all start from the average and from rank zero's optimizers.
void CheckpointKeeper::restore_replica(const Checkpoint& c, const std::filesystem::path& folder) {
  const auto ranks = c.values.has("world_size") ? c.values.get<std::int64_t>("world_size") : 1;
  if (ranks != run_.strategy->world_size() || !run_.strategy->divergent_weights()) return;
  const StateDict own = c.tensors.sub(rank_key(static_cast<std::size_t>(run_.strategy->rank())) + ".");
  const StateDict weights = own.sub("model.");
  if (weights.empty()) return;
  load_weights(run_, weights, folder);
  if (run_.strategy->rank() > 0) optimizers_.load_optimizer_state(own.sub("optimizer."));
}

void CheckpointKeeper::restore_val() {
  for (std::size_t i = 0; i < std::min(data_.val.size(), saved_val_.size()); ++i) {
    try {
      data_.val[i].load_state(saved_val_[i]);
    } catch (const StateError& e) {
      if (run_.state.point == SavePoint::validation_batch_end) throw;
      logging::warn("the validation data differ from those of the checkpoint: {}", e.what());
    }
  }
  saved_val_.clear();
  default_generator().set_state(mark_.rng);  // requesting the loaders may have drawn numbers
  mark(run_.state.point);
}

/// Returns this rank's state; rank zero's if it saved alone, after an exception.
StateMap CheckpointKeeper::own_part(const Checkpoint& c) const {
  if (run_.strategy->data_ranks() == 1) return c.values;
  const StateMap own = c.values.part(rank_key(static_cast<std::size_t>(run_.strategy->rank())));
  return own.empty() ? c.values : own;
}

/// Position at which training data resume. With a different number of ranks this must be the start of an epoch.
data::LoaderState CheckpointKeeper::train_place(const Checkpoint& c, const StateMap& own) const {
  const auto saved = data::LoaderState::from_map(own.part("loader"));
  // A finished epoch leaves its loader at its end, and the next iteration starts a new epoch. If the run was resumed
  // there and saved again, the loader is at the start of the next epoch already.
  const bool at_end = run_.state.epoch_complete && saved.batches > 0;
  const std::int64_t epoch = saved.epoch + (at_end ? 1 : 0);
  const auto ranks = c.values.has("world_size") ? c.values.get<std::int64_t>("world_size") : 1;
  if (ranks == run_.strategy->data_ranks()) return at_end ? saved.at_epoch(epoch) : saved;
  if (run_.state.batch > 0 && !run_.state.epoch_complete)
    throw StateError(fmt::format(
        "{} ranks saved it within an epoch, and this run has {}. Use as many, or resume from the end of an epoch.",
        ranks, run_.strategy->data_ranks()));
  data::LoaderState place = data_.train->state();
  place.take_seeds(saved);
  return place.at_epoch(epoch);
}

void CheckpointKeeper::restore(const Checkpoint& c, const std::filesystem::path& folder) {
  const StateMap v = own_part(c);
  runner_.take_parameters();
  try {
    load_full_optimizer_state(*run_.strategy, optimizers_, c.tensors.sub("optimizer."));
    optimizers_.load_scheduler_state(c.tensors.sub("scheduler."));
    data_.train->load_state(train_place(c, v));
    for (StateMap val; !(val = v.part(fmt::format("val_loader{}", saved_val_.size()))).empty();)
      saved_val_.push_back(data::LoaderState::from_map(val));
    run_.metrics.load_state(v.part("metrics"));
    run_.precision->load_state(c.values.part("precision"));
    restore_replica(c, folder);
    if (const StateMap s = c.values.part("strategy"); !s.empty()) run_.strategy->load_state(s);
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} does not fit this run: {}", folder.string(), e.what()));
  }
  const std::string prefix = rank_key(static_cast<std::size_t>(run_.strategy->rank()));
  const Stages* const stages = run_.strategy->stages();
  for (const auto& [name, p] : run_.module.named_parameters()) {
    if (stages && !stages->owns(p)) continue;
    const Tensor* own = c.tensors.find(prefix + ".grad." + name);
    if (const Tensor* grad = own ? own : c.tensors.find("grad." + name)) p.set_grad(*grad);
  }
  // Ranks with the same data draw the same numbers.
  const int stream = run_.strategy->data_ranks() == 1 ? 0 : run_.strategy->rank();
  default_generator().set_state(of_rank(generator_state(v.part("rng")), stream));
  mark(run_.state.point);
  const StateMap& all = c.values;
  const auto target = all.has("simd_target") ? all.get<std::string>("simd_target") : kernels::cpu::simd_target();
  if (target != kernels::cpu::simd_target())
    logging::warn("{} was written with {} instructions and resumes with {}: results may differ by rounding",
                  folder.string(), target, kernels::cpu::simd_target());
}

}  // namespace levin
