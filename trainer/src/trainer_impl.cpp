#include "src/trainer_impl.h"

#include <levin/autograd/modes.h>
#include <levin/core/warning.h>
#include <levin/distributed/error.h>
#include <levin/trainer/callbacks/model_pruning.h>
#include <levin/trainer/callbacks/model_summary.h>
#include <levin/trainer/callbacks/progress_bar.h>
#include <levin/trainer/callbacks/stochastic_weight_averaging.h>
#include <levin/trainer/callbacks/timer.h>
#include <levin/trainer/callbacks/weight_averaging.h>
#include <levin/trainer/model_graph.h>

#include <fmt/format.h>

#include <algorithm>
#include <typeinfo>

#include "src/checkpoint/checkpoint_shards.h"
#include "src/checkpoint/checkpoint_values.h"
#include "src/config/strategy_options.h"
#include "src/logging.h"

namespace levin {
namespace {

const char* stage_name(Stage stage) {
  constexpr const char* kNames[] = {"fit", "validate", "test", "predict"};
  return kNames[static_cast<int>(stage)];
}

bool is_policy(const CallbackPtr& c) { return dynamic_cast<CheckpointPolicy*>(c.get()) != nullptr; }

template <class C>
bool has(const std::vector<CallbackPtr>& callbacks) {
  return std::any_of(callbacks.begin(), callbacks.end(), [](const auto& c) { return dynamic_cast<C*>(c.get()); });
}

/// Tells the other ranks, unless the exception comes from their failure or from a signal to all.
void abort_ranks(Strategy& strategy, const std::exception& e) {
  const bool known = dynamic_cast<const distributed::DistributedError*>(&e) || dynamic_cast<const Interrupted*>(&e);
  if (!known) strategy.abort(e.what());
}

TrainerConfig checked(TrainerConfig c) {
  check_config(c);
  if (!c.barebones) return c;
  c.enable_checkpointing = c.enable_progress_bar = c.enable_model_summary = c.logger = false;
  c.loggers.clear();
  c.num_sanity_val_steps = 0;
  return c;
}

/// Forwards the hooks within a step to callbacks and the module.
class Forward final : public StepHooks {
 public:
  Forward(Run& run, Optimizers& optimizers, LossCheck& loss_check)
      : run_(run), optimizers_(optimizers), loss_check_(loss_check) {}
  void on_before_zero_grad() override {
    run_.callbacks_do(&Callback::on_before_zero_grad);
    run_.module_do(&LevinModule::on_before_zero_grad, optimizers_.optimizer());
  }
  void on_loss(const Tensor& loss) override { loss_check_.take_loss(loss); }
  void on_unscaled(const HostRead& skipped) override { loss_check_.before_step(skipped); }
  void on_before_backward(const Tensor& loss) override {
    if (!std::exchange(graph_logged_, true) && !run_.resumed)
      run_.with_loggers("log_graph", [&](Logger& l) { l.log_graph(trace_graph(run_.module, loss)); });
    run_.call(&Callback::on_before_backward, &LevinModule::on_before_backward, loss);
  }
  void backward(const Tensor& loss) override { run_.module.backward(loss); }
  void on_after_backward() override { run_.call(&Callback::on_after_backward, &LevinModule::on_after_backward); }
  void on_before_optimizer_step(optim::Optimizer& optimizer) override {
    run_.callbacks_do(&Callback::on_before_optimizer_step);
    run_.module_do(&LevinModule::on_before_optimizer_step, optimizer);
  }

 private:
  Run& run_;
  Optimizers& optimizers_;
  LossCheck& loss_check_;
  bool graph_logged_ = false;
};

FabricConfig fabric_config(const TrainerConfig& config) {
  auto result = shared_options<FabricConfig>(config);
  result.precision = config.precision;
  return result;
}

}  // namespace

Trainer::Impl::Impl(TrainerConfig given) : config(checked(std::move(given))), fabric(fabric_config(config)) {
  set_default_warning_handler([](const std::string& text) { logging::warn("{}", text); });
  if (config.seed) manual_seed(static_cast<std::uint64_t>(*config.seed));
  root = config.default_root_dir.empty() ? std::filesystem::current_path().string() : config.default_root_dir;
  metrics.set_ranks(fabric.strategy());
  add_defaults();
}

// The user's callbacks come first, then those of the configuration; policies are last, since they save the others'
// state.
void Trainer::Impl::add_defaults() {
  callbacks = config.callbacks;
  if (config.enable_model_summary && !has<ModelSummary>(callbacks)) callbacks.push_back(ModelSummary());
  if (config.max_time) callbacks.push_back(Timer(*config.max_time));
  if (config.enable_progress_bar && !has<ProgressBar>(callbacks)) callbacks.push_back(ProgressBar());
  if (config.enable_checkpointing && config.fast_dev_run == 0) add_policies();
  policies_last();
  own_callbacks = callbacks;
  if (config.fast_dev_run > 0 || !fabric.is_global_zero()) return;
  loggers = config.loggers;
  for (auto& logger : make_loggers(config.logger, root)) loggers.push_back(std::move(logger));
}

// Policies of --checkpoint-every-n-steps are separate from the program's own, which follow their own plan.
void Trainer::Impl::add_policies() {
  const bool none = !has<CheckpointPolicy>(callbacks);
  const auto every = config.checkpoint_every_n_steps;
  if (none)
    callbacks.push_back(ModelCheckpoint({.every_n_train_steps = every}));
  else if (every > 0)
    callbacks.push_back(ModelCheckpoint({.dirpath = root / "checkpoints_by_step", .every_n_train_steps = every}));
}

void Trainer::Impl::policies_last() {
  std::stable_partition(callbacks.begin(), callbacks.end(), [](const auto& c) { return !is_policy(c); });
}

/// The module's callbacks replace those of the same types.
void Trainer::Impl::take_callbacks(LevinModule& module) {
  callbacks = own_callbacks;
  const auto extra = module.configure_callbacks();
  std::erase_if(callbacks, [&](const CallbackPtr& c) {
    const Callback& known = *c;
    return std::ranges::any_of(extra, [&](const CallbackPtr& e) {
      const Callback& own = *e;
      return typeid(own) == typeid(known);
    });
  });
  callbacks.insert(callbacks.end(), extra.begin(), extra.end());
  // Only rank zero writes to the screen.
  if (!fabric.is_global_zero())
    std::erase_if(callbacks, [](const CallbackPtr& c) {
      return dynamic_cast<ProgressBar*>(c.get()) || dynamic_cast<ModelSummary*>(c.get());
    });
  policies_last();
}

Run Trainer::Impl::make_run(LevinModule& module, Stage stage) {
  return {RunContext{.config = config,
                     .state = state,
                     .metrics = metrics,
                     .module = module,
                     .stop = stop,
                     .data = &data,
                     .strategy = &fabric.strategy(),
                     .precision = precision,
                     .loggers = loggers,
                     .stage = stage,
                     .max_epochs = FitLoop::max_epochs(config),
                     .root_dir = root},
          state, callbacks, source.datamodule, counts};
}

namespace {

/// Connects a module to a run.
class Attached {
 public:
  Attached(LevinModule& module, RunContext& run) : module_(module) { module_.set_run(&run); }
  ~Attached() { module_.set_run(nullptr); }
  Attached(const Attached&) = delete;
  Attached& operator=(const Attached&) = delete;

 private:
  LevinModule& module_;
};

/// Sets the trainer's current run, and clears it at the end, also if a hook throws.
class Running {
 public:
  Running(Run*& current, Run& run) : current_(current) { current_ = &run; }
  ~Running() { current_ = nullptr; }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  Run*& current_;
};

}  // namespace

/// Runs `body` between setup and teardown; the callbacks are notified of an exception, which then propagates.
template <class F>
void Trainer::Impl::guarded(Run& run, LevinModule& module, Stage stage, const F& body) {
  const SignalGuard signals(config.handle_signals);
  const ProfilerGuard measuring(profiler.get(), stage, root);
  const ProfileScope whole([&] { return fmt::format("run_{}", stage_name(stage)); });
  const detect_anomaly anomaly(config.detect_anomaly || anomaly_enabled());
  stop.clear();
  status = RunStatus::interrupted;
  ended_by = 0;
  std::optional<Running> named(std::in_place, running, run);
  std::optional<Attached> attached;
  const auto finish = [&] {
    named.reset();
    attached.reset();
    metrics.set_scope(Scope::closed, Split::train);
    run.flush_loggers();
    if (source.datamodule) source.datamodule->teardown(stage);
    run.callbacks_do(&Callback::teardown);
    module.teardown(stage);
    source = {};  // the data may not outlive this run
  };
  const auto fail = [&](const std::exception& e, RunStatus how) {
    status = how;
    abort_ranks(fabric.strategy(), e);
    run.callbacks_do(&Callback::on_exception, e);
    if (source.datamodule) source.datamodule->on_exception(e);
    run.with_loggers("finalize", [&](Logger& l) { l.finalize(how); });
    finish();
  };
  try {
    attached.emplace(module, run);
    prepare(run, module, stage);
    body();
    fabric.strategy().finish(module);
  } catch (const Interrupted& e) {
    ended_by = e.signal();
    fail(e, RunStatus::interrupted);
    throw;
  } catch (const std::exception& e) {
    fail(e, RunStatus::failed);
    throw;
  } catch (...) {
    fail(Error("[trainer] the exception thrown is not a std::exception."), RunStatus::failed);
    throw;
  }
  finish();
  run.with_loggers("finalize", [](Logger& l) { l.finalize(RunStatus::success); });
  status = RunStatus::success;
}

void Trainer::Impl::prepare(Run& run, LevinModule& module, Stage stage) {
  if (fabric.local_rank() == 0) {  // the other ranks use its results
    if (source.datamodule) source.datamodule->prepare_data();
    module.prepare_data();
  }
  fabric.barrier();
  if (source.datamodule) source.datamodule->setup(stage);
  run.callbacks_do(&Callback::setup);
  module.setup(stage);
  module.configure_model();
  if (config.sync_batchnorm) fabric.strategy().sync_batchnorm(module);
  fabric.setup_module(module);
}

std::int64_t Trainer::Impl::total_steps() {
  if (running && running->stage == Stage::fit) load_train(*running, data, source);
  if (!counts.train)
    throw UsageError(
        "[estimated_stepping_batches] no fit has counted its batches yet. Ask in a fit, from setup on, or after one.");
  return FitLoop::total_steps(config, *counts.train, callbacks);
}

void Trainer::Impl::check_manual(const LevinModule& module) const {
  if (module.automatic_optimization) return;
  if (config.gradient_clip_val)
    throw UsageError(
        fmt::format("[fit] gradient_clip_val {} is for automatic optimization, but {} uses manual optimization. Call "
                    "clip_gradients in its training_step.",
                    *config.gradient_clip_val, module.type_name()));
  if (config.accumulate_grad_batches != 1)
    throw UsageError(
        fmt::format("[fit] accumulate_grad_batches {} is for automatic optimization, but {} uses manual optimization. "
                    "Count batches in its training_step.",
                    config.accumulate_grad_batches, module.type_name()));
}

/// With sharded weights no callback can access all of them.
void Trainer::Impl::check_sharded_weights() {
  if (!fabric.strategy().sharded_weights()) return;
  for (const auto& c : callbacks) {
    const Callback& callback = *c;
    if (dynamic_cast<const WeightAveraging*>(&callback) || dynamic_cast<const StochasticWeightAveraging*>(&callback) ||
        dynamic_cast<const ModelPruning*>(&callback))
      throw UsageError(
          fmt::format("[{}] it needs the full state dict, which --strategy {} shards. Use --strategy zero_2.",
                      short_type_name(typeid(callback)), fabric.strategy().name()));
  }
}

/// Registers a fit's optimizers with the strategy. At the end, also by an exception, it releases them, and callbacks no
/// longer see them.
struct OptimizersInUse {
  OptimizersInUse(Run& r, const Optimizers& optimizers) : run(r) { run.strategy->setup_optimizers(optimizers); }
  ~OptimizersInUse() {
    run.strategy->release_optimizers();
    run.optimizers = nullptr;
    run.manual = nullptr;
    run.step_options = nullptr;
  }
  OptimizersInUse(const OptimizersInUse&) = delete;
  OptimizersInUse& operator=(const OptimizersInUse&) = delete;
  Run& run;
};

/// Gives the trainer access to the keeper of the running fit. When it ends the state remains, as handles of the same
/// tensors.
struct Trainer::Impl::KeeperLoan {
  KeeperLoan(Impl& trainer_, CheckpointKeeper& of_fit) : trainer(trainer_) { trainer.lent = &of_fit; }
  ~KeeperLoan() {
    try {
      trainer.finished = trainer.lent->snapshot({.with_hooks = false});
    } catch (const std::exception& e) {
      logging::warn("the state of this fit cannot be saved later: {}", e.what());
    }
    trainer.lent = nullptr;
  }
  KeeperLoan(const KeeperLoan&) = delete;
  KeeperLoan& operator=(const KeeperLoan&) = delete;
  Impl& trainer;
};

void Trainer::Impl::save(const std::string& path, bool weights_only) {
  if (!lent && !finished) throw UsageError("[save_checkpoint] nothing was trained yet. Call it in a fit or after one.");
  if (lent) return lent->save(path, {.weights_only = weights_only});
  Checkpoint c = *finished;
  if (!weights_only) save_callbacks(c, callbacks);
  if (!trained_lives.expired()) {
    c.values.put("user", make_run(*trained, Stage::fit).user_state());
  }
  if (weights_only) keep_weights_only(c);
  write_checkpoint(fabric.strategy(), path, c);
}

void Trainer::Impl::fit(LevinModule& module, const DataSource& from, const std::string& ckpt) {
  spawned(module, Stage::fit, [&] { fit_here(module, from, ckpt); });
}

void Trainer::Impl::fit_here(LevinModule& module, const DataSource& from, const std::string& ckpt) {
  source = from;
  check_manual(module);
  trained_lives.reset();
  state = {};
  counts = {};
  metrics.clear();
  data = source.given;
  if (config.overfits()) data.train = nullptr;  // it is reordered when it is requested
  data.val = nullptr;                           // those of a fit are requested when needed
  take_callbacks(module);
  Run run = make_run(module, Stage::fit);

  guarded(run, module, Stage::fit, [&] {
    const auto folder = of_rank_zero(run, [&] { return choose_checkpoint(run, ckpt.empty() ? config.resume : ckpt); });
    ckpt_path = folder;
    run.resumed = !folder.empty();
    const Checkpoint checkpoint = run.resumed ? load_for_fit(run, folder) : Checkpoint();
    run.estimated_stepping_batches = [this] { return total_steps(); };
    check_sharded_weights();
    Optimizers optimizers = module.configure_optimizers();
    if (optimizers.empty())
      throw UsageError("[fit] configure_optimizers returned no optimizer. Return one, e.g. optim::AdamW.");
    const OptimizersInUse in_use(run, optimizers);
    LossCheck loss_check(run);
    Forward hooks(run, optimizers, loss_check);
    StepRunner runner(module, optimizers, fabric.strategy(), *precision, hooks,
                      {.accumulate_grad_batches = config.accumulate_grad_batches,
                       .gradient_clip_val = config.gradient_clip_val,
                       .gradient_clip_algorithm = config.gradient_clip_algorithm,
                       .capture = config.capture});
    run.manual = runner.manual();
    CheckpointKeeper keeper(run, optimizers, runner, data);
    const KeeperLoan keeper_loan(*this, keeper);
    run.optimizers = &optimizers;
    run.step_options = &runner.options();
    state.optimizer_steps.resize(optimizers.size());
    if (source.given.train) load_train(run, data, source);
    run.call(&Callback::on_fit_start, &LevinModule::on_fit_start);
    run.log_begin();
    module.zero_grad();
    if (run.resumed) {
      load_train(run, data, source);
      keeper.restore(checkpoint, folder);
      run.with_loggers("resume", [&](Logger& l) { l.resume(state.global_step); });
    }
    FitParts parts{data, source, optimizers, runner, keeper, loss_check};
    try {
      FitLoop(run, parts).run(run.resumed);
      fabric.strategy().end_training();
    } catch (const Interrupted&) {
      fabric.strategy().end_training();
      throw;  // everything is saved already
    } catch (const std::exception& e) {
      abort_ranks(fabric.strategy(), e);
      keeper.save_exception();
      throw;
    }
    run.call(&Callback::on_fit_end, &LevinModule::on_fit_end);
    keeper.finish();
  });
  trained = &module;
  trained_lives = module.until_next_run();  // save_checkpoint may use the module that long
}

void Trainer::Impl::evaluate(LevinModule& module, const DataSource& from, Stage stage, const std::string& ckpt,
                             Predictions* predictions) {
  source = from;
  if (!source.datamodule) {  // data that this run is not given are taken from the last one
    if (!source.given.val) source.given.val = data.val;
    if (!source.given.test) source.given.test = data.test;
    if (!source.given.predict) source.given.predict = data.predict;
  }
  take_callbacks(module);
  Run run = make_run(module, stage);
  guarded(run, module, stage, [&] {
    ckpt_path = of_rank_zero(run, [&] { return resolve_checkpoint(callbacks, ckpt.empty() ? config.resume : ckpt); });
    if (!ckpt_path.empty()) load_weights(run, read_checkpoint(ckpt_path).model, ckpt_path);
    module.zero_grad();
    const EvalPlan plan = run.eval_plan(source);
    if (!plan.loaders)
      throw UsageError(fmt::format("[{0}] there is no loader for it. Give {0} one.", stage_name(stage)));
    (stage == Stage::validate ? data.val : stage == Stage::test ? data.test : data.predict) = plan.loaders;
    if (!EvalLoop(run, stage).run(plan, predictions))
      throw Interrupted(run.signal(), fmt::format("{} was interrupted.", stage_name(stage)));
  });
}

Trainer::Results Trainer::Impl::measure(LevinModule& module, const DataSource& from, Stage stage,
                                        const std::string& ckpt) {
  spawned(module, stage, [&] { evaluate(module, from, stage, ckpt, nullptr); });
  const bool tests = stage == Stage::test;
  return metrics.results_by_loader(tests ? Split::test : Split::validation, (tests ? counts.test : counts.val).size());
}

Predictions Trainer::Impl::predict(LevinModule& module, const DataSource& from, const std::string& ckpt) {
  Predictions predictions;
  spawned(module, Stage::predict, [&] { evaluate(module, from, Stage::predict, ckpt, &predictions); });
  return predictions;
}

}  // namespace levin
