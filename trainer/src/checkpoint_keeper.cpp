#include "checkpoint_keeper.h"

#include <levin/core/io.h>
#include <levin/kernels/simd_target.h>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "generator_map.h"
#include "slurm.h"

namespace levin {
namespace {

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

CheckpointKeeper::CheckpointKeeper(Run& run, Optimizers& optimizers, StepRunner& runner, const DataModule& data)
    : run_(run), optimizers_(optimizers), runner_(runner), data_(data), writer_(run.config.async_checkpoints) {
  for (const auto& c : run.callbacks)
    if (auto* policy = dynamic_cast<CheckpointPolicy*>(c.get())) policies_.push_back(policy);
  mark(run.state.point);
}

// --- asking and writing

void CheckpointKeeper::failed(CheckpointPolicy& policy, const StateMap& before, const IoError& error) {
  policy.load_state(before);
  if (!policy.continues_on_error()) throw error;
  spdlog::warn("training goes on without a checkpoint: {}", error.what());
}

/// Waits for what is being written, and says how that went.
void CheckpointKeeper::collect() {
  if (!writer_.is_writing()) return;
  try {
    writer_.wait();
  } catch (const IoError& e) {
    failed(*writing_for_, before_writing_, e);
  }
}

template <class F>
std::filesystem::path CheckpointKeeper::ask(CheckpointPolicy& policy, const F& decide) {
  using Kind = CheckpointAction::Kind;
  collect();
  StateMap before = policy.state();
  const auto actions = std::make_shared<std::vector<CheckpointAction>>(decide());
  std::filesystem::path saved;
  auto contents = std::make_shared<EncodedCheckpoint>();
  for (const auto& action : *actions) {
    if (action.kind != Kind::save) continue;
    saved = action.path;
    const ProfileScope scope("save_checkpoint", Phase::checkpoint);
    *contents = encode_checkpoint(snapshot(action.weights_only));
  }
  if (actions->empty()) return saved;
  try {
    writer_.run([actions, contents] {
      for (const auto& action : *actions) {
        if (action.kind == Kind::save) write_checkpoint(action.path, *contents);
        if (action.kind == Kind::point) io::write_pointer(action.path, action.target);
        if (action.kind == Kind::remove) remove_checkpoint(action.path);
      }
    });
    writing_for_ = &policy;
    before_writing_ = std::move(before);
  } catch (const IoError& e) {
    failed(policy, before, e);
    saved.clear();
  }
  return saved;
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
  if (run_.config.fast_dev_run > 0) return;
  for (auto* policy : policies_)
    if (policy->due(run_.context, point)) ask(*policy, [&] { return policy->decide(run_.context, point); });
}

std::filesystem::path CheckpointKeeper::save_interrupted() {
  std::filesystem::path saved;
  if (run_.config.fast_dev_run > 0) return saved;
  for (auto* policy : policies_) {
    const auto path = ask(*policy, [&] { return policy->decide_interrupted(run_.context); });
    if (saved.empty()) saved = path;
  }
  collect();
  return saved;
}

void CheckpointKeeper::save_exception() noexcept {
  if (run_.config.fast_dev_run > 0 || run_.context.sanity_checking) return;
  const auto guarded = [](const auto& f) {
    try {
      f();
    } catch (const std::exception& e) {
      spdlog::warn("no checkpoint was saved after the error: {}", e.what());
    }
  };
  for (auto* policy : policies_) guarded([&] { ask(*policy, [&] { return policy->decide_exception(run_.context); }); });
  guarded([&] { collect(); });
}

std::filesystem::path CheckpointKeeper::save_for_requeue() {
  collect();
  const auto& root = run_.context.root_dir;
  const auto former = slurm::newest_checkpoint(root), path = slurm::next_checkpoint(root);
  write_checkpoint(path, snapshot());
  if (!former.empty()) remove_checkpoint(former);
  return path;
}

void CheckpointKeeper::finish() {
  if (run_.config.fast_dev_run > 0) return;
  for (auto* policy : policies_) ask(*policy, [&] { return policy->decide_finished(run_.context); });
  collect();
  if (!run_.config.handle_signals || !slurm::job_id()) return;
  if (const auto former = slurm::newest_checkpoint(run_.context.root_dir); !former.empty()) remove_checkpoint(former);
}

// --- taking apart and putting together

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

/// Behind the batch in hand, where the walk had to look ahead of it.
data::LoaderState CheckpointKeeper::train_place() const {
  return run_.train_place ? *run_.train_place : data_.train->state();
}

/// The last mark, unless more batches have been finished since.
CheckpointKeeper::Mark CheckpointKeeper::place() const {
  const TrainState& s = run_.state;
  Mark at = mark_;
  if (s.epoch != at.state.epoch || s.batch != at.state.batch) {
    at.state = s;
    at.train = train_place();
    at.rng = default_generator().state();
  }
  at.state.optimizer_steps = s.optimizer_steps;
  // A loader that stands at the end of its epoch begins the next one.
  const auto onward = [](data::LoaderState& l) {
    if (l.batches > 0) l = l.at_epoch(l.epoch + 1);
  };
  if (at.state.batch == 0 && !at.state.epoch_complete) onward(at.train);
  for (std::size_t i = 0; i < at.val.size(); ++i)
    if (at.state.point != SavePoint::validation_batch_end || at.state.eval_loader != static_cast<std::int64_t>(i))
      onward(at.val[i]);
  return at;
}

StateMap weights_only_values(const StateMap& values) {
  StateMap out;
  for (const char* part : {"loop", "hparams", "user"}) out.put(part, values.part(part));
  for (const char* name : {"precision_name", "simd_target"}) out.set(name, values.get<std::string>(name));
  out.set("weights_only", std::int64_t{1});
  return out;
}

Checkpoint CheckpointKeeper::snapshot(bool weights_only, bool with_hooks) {
  runner_.settle(run_.state);
  const Mark at = place();
  Checkpoint c;
  c.model = run_.precision.weights(run_.module);
  bool replaced = false;
  for (const auto& callback : run_.callbacks) replaced = callback->on_save_weights(run_.context, c.model) || replaced;
  StateMap& v = c.values;
  v.put("loop", at.state.to_map());
  v.put("hparams", run_.module.hparams());
  v.set("precision_name", run_.precision.name());
  v.set("simd_target", std::string(kernels::cpu::simd_target()));
  if (!weights_only) {
    if (replaced) c.tensors.merge("model.", run_.precision.weights(run_.module));
    save_training(c, at);
  }
  if (with_hooks) {
    if (!weights_only) save_callbacks(c, run_.callbacks);
    v.put("user", run_.user_state());
  }
  if (weights_only) v = weights_only_values(v);
  return c;
}

/// What training goes on from, beside the weights.
void CheckpointKeeper::save_training(Checkpoint& c, const Mark& at) {
  c.tensors.merge("optimizer.", optimizers_.optimizer_state());
  c.tensors.merge("scheduler.", optimizers_.scheduler_state());
  if (at.state.window_nominal > 0) {
    for (const auto& [name, p] : run_.module.named_parameters())
      if (p.grad().defined()) c.tensors.merge("grad.", {{name, p.grad()}});
  }
  StateMap& v = c.values;
  v.put("loader", at.train.to_map());
  for (std::size_t i = 0; i < at.val.size(); ++i) v.put(fmt::format("val_loader{}", i), at.val[i].to_map());
  v.put("rng", to_map(at.rng));
  v.put("metrics", run_.metrics.state());
  v.put("precision", run_.precision.state());
}

void CheckpointKeeper::restore_val() {
  for (std::size_t i = 0; i < std::min(data_.val.size(), saved_val_.size()); ++i) {
    try {
      data_.val[i].load_state(saved_val_[i]);
    } catch (const StateError& e) {
      if (run_.state.point == SavePoint::validation_batch_end) throw;
      spdlog::warn("the data for validation are others than those of the checkpoint: {}", e.what());
    }
  }
  saved_val_.clear();
  mark(run_.state.point);
}

void CheckpointKeeper::restore(const Checkpoint& c, const std::filesystem::path& folder) {
  const StateMap& v = c.values;
  runner_.take_parameters();
  try {
    optimizers_.load_optimizer_state(c.tensors.sub("optimizer."));
    optimizers_.load_scheduler_state(c.tensors.sub("scheduler."));
    const auto train = data::LoaderState::from_map(v.part("loader"));
    // An epoch that is over leaves its loader at its end: the next walk is a new epoch. One that was resumed there, and
    // is saved again, stands at the beginning of the next already.
    const bool at_end = run_.state.epoch_complete && train.batches > 0;
    data_.train->load_state(at_end ? train.at_epoch(train.epoch + 1) : train);
    for (StateMap val; !(val = v.part(fmt::format("val_loader{}", saved_val_.size()))).empty();)
      saved_val_.push_back(data::LoaderState::from_map(val));
    run_.metrics.load_state(v.part("metrics"));
    run_.precision.load_state(v.part("precision"));
  } catch (const StateError& e) {
    throw StateError(fmt::format("[checkpoint] {} does not fit this run: {}", folder.string(), e.what()));
  }
  for (const auto& [name, p] : run_.module.named_parameters())
    if (const Tensor* grad = c.tensors.find("grad." + name)) p.set_grad(*grad);
  default_generator().set_state(generator_state(v.part("rng")));
  mark(run_.state.point);
  const auto target = v.has("simd_target") ? v.get<std::string>("simd_target") : kernels::cpu::simd_target();
  if (target != kernels::cpu::simd_target())
    spdlog::warn("{} was written with {} instructions and goes on with {}: the bits may differ by rounding",
                 folder.string(), target, kernels::cpu::simd_target());
}

}  // namespace levin
