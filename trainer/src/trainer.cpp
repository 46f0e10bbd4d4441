#include <levin/trainer/trainer.h>

#include <levin/autograd/modes.h>
#include <levin/trainer/callbacks/timer.h>
#include <levin/trainer/model_summary.h>
#include <levin/trainer/progress_bar.h>

#include <fmt/format.h>

#include <algorithm>

#include "fit_loop.h"

namespace levin {
namespace {

const char* name_of(Stage stage) {
  constexpr const char* kNames[] = {"fit", "validate", "test", "predict"};
  return kNames[static_cast<int>(stage)];
}

bool is_policy(const CallbackPtr& c) { return dynamic_cast<CheckpointPolicy*>(c.get()) != nullptr; }

template <class C>
bool has(const std::vector<CallbackPtr>& callbacks) {
  return std::any_of(callbacks.begin(), callbacks.end(), [](const auto& c) { return dynamic_cast<C*>(c.get()); });
}

}  // namespace

struct Trainer::Impl {
  TrainerConfig config;
  std::vector<CallbackPtr> callbacks;
  std::vector<std::shared_ptr<Logger>> loggers;
  std::unique_ptr<Strategy> strategy;
  std::unique_ptr<Precision> precision;
  std::shared_ptr<Profiler> profiler;
  TrainState state;
  MetricStore metrics;
  StopToken stop;
  DataModule data;
  std::filesystem::path root;

  explicit Impl(TrainerConfig given) : config(std::move(given)) {
    check_config(config);
    strategy = make_strategy(config.strategy, choose_device(config.accelerator, config.devices));
    precision = make_precision(config.precision);
    profiler = make_profiler(config.profiler);
    if (config.seed) manual_seed(static_cast<std::uint64_t>(*config.seed));
    root = config.default_root_dir.empty() ? std::filesystem::current_path() : config.default_root_dir;
    add_defaults();
  }

  // The user's order, then what the configuration adds; policies last, since they save what the others know.
  void add_defaults() {
    callbacks = config.callbacks;
    if (config.max_time) callbacks.push_back(Timer(*config.max_time));
    if (config.enable_model_summary && !has<ModelSummary>(callbacks)) callbacks.push_back(ModelSummary());
    if (config.enable_progress_bar && !has<ProgressBar>(callbacks)) callbacks.push_back(ProgressBar());
    if (config.enable_checkpointing && config.fast_dev_run == 0) add_policies();
    std::stable_partition(callbacks.begin(), callbacks.end(), [](const auto& c) { return !is_policy(c); });
    if (config.fast_dev_run > 0) return;
    loggers = config.loggers;
    if (config.logger) loggers.push_back(std::make_shared<CSVLogger>(root / "metrics.csv"));
  }

  // Those of --checkpoint-every-n-steps stand apart from the program's own, which have a plan of theirs.
  void add_policies() {
    const bool none = !has<CheckpointPolicy>(callbacks);
    const auto every = config.checkpoint_every_n_steps;
    if (none)
      callbacks.push_back(ModelCheckpoint({.every_n_train_steps = every}));
    else if (every > 0)
      callbacks.push_back(ModelCheckpoint({.dirpath = root / "checkpoints_by_step", .every_n_train_steps = every}));
  }

  void begin(Run& run, Stage stage) {
    run.context.stage = stage;
    run.context.root_dir = root;
    run.context.max_epochs = FitLoop::max_epochs(config);
    run.context.data = &data;
  }

  std::filesystem::path find_checkpoint(const std::string& which) const {
    for (const auto& c : callbacks) {
      const auto* policy = dynamic_cast<CheckpointPolicy*>(c.get());
      if (!policy) continue;
      if (auto path = policy->find(which); !path.empty()) return path;
    }
    return {};
  }

  /// A folder as given, or what "last" and "best" stand for: in this trainer, else as pointers of an earlier run.
  std::filesystem::path resolve(const std::string& ckpt) const {
    if (ckpt.empty() || (ckpt != "last" && ckpt != "best")) return ckpt;
    if (auto path = find_checkpoint(ckpt); !path.empty()) return path;
    std::filesystem::path newest;
    for (const auto& c : callbacks) {
      const auto* policy = dynamic_cast<CheckpointPolicy*>(c.get());
      if (!policy || !std::filesystem::exists(policy->directory() / ckpt)) continue;
      const auto folder = std::filesystem::canonical(policy->directory() / ckpt);
      if (newest.empty() || (ckpt == "last" && last_write_time(folder) > last_write_time(newest))) newest = folder;
    }
    if (!newest.empty()) return newest;
    throw IoError(fmt::format("[trainer] there is no checkpoint \"{}\" to load. Train first, or give a folder.", ckpt));
  }

  /// Runs `body` between setup and teardown; an exception passes the callbacks on its way.
  template <class F>
  void guarded(Run& run, LevinModule& module, Stage stage, const F& body) {
    const SignalGuard signals(config.handle_signals);
    const ProfilerGuard measuring(profiler.get(), stage, root);
    const ProfileScope whole([&] { return fmt::format("run_{}", name_of(stage)); });
    const detect_anomaly anomaly(config.detect_anomaly || anomaly_enabled());
    stop.clear();
    const auto finish = [&] {
      module.set_link({});
      metrics.set_scope(Scope::closed, Split::train);
      run.flush_loggers();
      run.callbacks_do(&Callback::teardown);
      module.teardown(stage);
    };
    try {
      module.set_link({.metrics = &metrics, .state = &state});
      module.prepare_data();
      run.callbacks_do(&Callback::setup);
      module.setup(stage);
      body();
    } catch (const std::exception& e) {
      run.callbacks_do(&Callback::on_exception, e);
      finish();
      throw;
    }
    finish();
  }

  void fit(LevinModule& module, const std::string& ckpt);
  void evaluate(LevinModule& module, Stage stage, const DataModule& given, const std::string& ckpt,
                std::vector<Tensor>* predictions);
};

void Trainer::Impl::fit(LevinModule& module, const std::string& ckpt) {
  if (!data.train) throw UsageError("[fit] there is no loader for training. Give fit one.");
  state = {};
  metrics.clear();
  Run run(config, module, state, metrics, stop, *strategy, *precision, callbacks, loggers);
  begin(run, Stage::fit);
  RunContext& context = run.context;
  context.train_batches = run.limit(config.limit_train_batches, *data.train, "--limit-train-batches");

  guarded(run, module, Stage::fit, [&] {
    precision->setup(module);
    strategy->setup(module);
    const auto folder = resolve(ckpt.empty() ? config.resume : ckpt);
    context.resumed = !folder.empty();
    Checkpoint checkpoint;
    if (!folder.empty()) {
      checkpoint = read_checkpoint(folder);
      check_precision(checkpoint, *precision, folder);
      load_weights(*precision, module, trained_weights(checkpoint), folder);
      const StateMap user = checkpoint.values.part("user");
      run.callbacks_do(&Callback::on_load_checkpoint, user);
      module.on_load_checkpoint(user);
      restore_callbacks(run, checkpoint, folder);
    }
    module.set_link({.metrics = &metrics, .state = &state,
                     .total_steps = FitLoop::total_steps(config, context.train_batches, context.max_epochs)});
    Optimizers optimizers = module.configure_optimizers();
    if (optimizers.empty())
      throw UsageError("[fit] configure_optimizers gave no optimizer. Return one, e.g. optim::AdamW.");

    struct Forward final : StepHooks {
      Forward(Run& run_, Optimizers& optimizers_) : run(run_), optimizers(optimizers_) {}
      void on_before_zero_grad() override {
        run.callbacks_do(&Callback::on_before_zero_grad);
        run.module.on_before_zero_grad(optimizers.optimizer());
      }
      void on_before_backward(const Tensor& loss) override {
        run.call(&Callback::on_before_backward, &LevinModule::on_before_backward, loss);
      }
      void on_after_backward() override { run.call(&Callback::on_after_backward, &LevinModule::on_after_backward); }
      void on_before_optimizer_step() override {
        run.callbacks_do(&Callback::on_before_optimizer_step);
        run.module.on_before_optimizer_step(optimizers.optimizer());
      }
      Run& run;
      Optimizers& optimizers;
    } hooks(run, optimizers);

    StepRunner runner(module, optimizers, *strategy, *precision, hooks,
                      {.accumulate_grad_batches = config.accumulate_grad_batches,
                       .gradient_clip_val = config.gradient_clip_val,
                       .gradient_clip_algorithm = config.gradient_clip_algorithm});
    CheckpointKeeper keeper(run, optimizers, runner, *data.train);
    context.optimizers = &optimizers;
    context.step_options = &runner.options();
    run.call(&Callback::on_fit_start, &LevinModule::on_fit_start);
    if (context.resumed) {
      keeper.restore(checkpoint, folder);
      for (const auto& logger : run.loggers) logger->resume(state.global_step);
    }
    FitParts parts{*data.train, data.val ? &*data.val : nullptr, optimizers, runner, keeper};
    if (context.train_batches > 0) FitLoop(run, parts).run(context.resumed);
    run.call(&Callback::on_fit_end, &LevinModule::on_fit_end);
  });
}

void Trainer::Impl::evaluate(LevinModule& module, Stage stage, const DataModule& given, const std::string& ckpt,
                             std::vector<Tensor>* predictions) {
  const auto pick = [&](const DataModule& d) {
    return stage == Stage::validate ? d.val : stage == Stage::test ? d.test : d.predict;
  };
  const auto loader = pick(given) ? pick(given) : pick(data);
  if (!loader) throw UsageError(fmt::format("[{0}] there is no loader for it. Give {0} one.", name_of(stage)));
  const std::pair<const BatchLimit*, const char*> limits[] = {
      {&config.limit_val_batches, "--limit-val-batches"},
      {&config.limit_test_batches, "--limit-test-batches"},
      {&config.limit_predict_batches, "--limit-predict-batches"}};
  const auto& [asked, option] = limits[static_cast<int>(stage) - 1];
  Run run(config, module, state, metrics, stop, *strategy, *precision, callbacks, loggers);
  begin(run, stage);
  guarded(run, module, stage, [&] {
    precision->setup(module);
    strategy->setup(module);
    if (const auto folder = resolve(ckpt.empty() ? config.resume : ckpt); !folder.empty())
      load_weights(*precision, module, read_checkpoint(folder).model, folder);
    const std::int64_t batches = run.limit(*asked, *loader, option);
    if (!EvalLoop(run, stage).run(*loader, batches, predictions))
      throw Interrupted(SignalGuard::received(), fmt::format("{} was interrupted.", name_of(stage)));
  });
}

Trainer::Trainer(TrainerConfig config) : impl_(new Impl(std::move(config))) {}
Trainer::~Trainer() = default;

void Trainer::fit(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  impl_->data = data;
  impl_->fit(module, ckpt_path);
}

void Trainer::fit(LevinModule& module, data::DataLoader& train) { fit(module, DataModule{.train = borrowed(train)}); }

void Trainer::fit(LevinModule& module, data::DataLoader& train, data::DataLoader& val, const std::string& ckpt_path) {
  fit(module, DataModule{.train = borrowed(train), .val = borrowed(val)}, ckpt_path);
}

std::map<std::string, double> Trainer::validate(LevinModule& module, const DataModule& data,
                                                const std::string& ckpt_path) {
  impl_->evaluate(module, Stage::validate, data, ckpt_path, nullptr);
  return impl_->metrics.results(Split::validation);
}

std::map<std::string, double> Trainer::test(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  impl_->evaluate(module, Stage::test, data, ckpt_path, nullptr);
  return impl_->metrics.results(Split::test);
}

std::vector<Tensor> Trainer::predict(LevinModule& module, const DataModule& data, const std::string& ckpt_path) {
  std::vector<Tensor> predictions;
  impl_->evaluate(module, Stage::predict, data, ckpt_path, &predictions);
  return predictions;
}

const TrainerConfig& Trainer::config() const { return impl_->config; }
const TrainState& Trainer::state() const { return impl_->state; }
const MetricStore& Trainer::metrics() const { return impl_->metrics; }
StopToken& Trainer::stop_token() { return impl_->stop; }

std::filesystem::path Trainer::checkpoint_path(const std::string& which) const { return impl_->find_checkpoint(which); }

}  // namespace levin
