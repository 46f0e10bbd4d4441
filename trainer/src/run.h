#pragma once
// What the loops of one fit, validate, test or predict share, and how hooks are called.

#include <levin/trainer/callback.h>
#include <levin/trainer/logger.h>
#include <levin/trainer/module.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/signals.h>
#include <levin/trainer/strategy.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "data_source.h"

#include "profilers/actions.h"

namespace levin {

using Scope = MetricStore::Scope;

/// Batches of an epoch, of evaluations by loader, as the limits leave them; -1 where nobody knows.
struct BatchCounts {
  std::optional<std::int64_t> train{};
  std::vector<std::int64_t> val{}, sanity_val{}, test{}, predict{};
};

struct Run {
  Run(const TrainerConfig& config_, LevinModule& module_, TrainState& state_, MetricStore& metrics_, StopToken& stop_,
      Strategy& strategy_, Precision& precision_, std::vector<CallbackPtr> callbacks_,
      std::vector<std::shared_ptr<Logger>> loggers_)
      : config(config_),
        module(module_),
        state(state_),
        metrics(metrics_),
        stop(stop_),
        strategy(strategy_),
        precision(precision_),
        callbacks(std::move(callbacks_)),
        loggers(std::move(loggers_)),
        context{.config = config_,
                .state = state_,
                .metrics = metrics_,
                .module = module_,
                .stop = stop_,
                .strategy = &strategy_,
                .precision = &precision_,
                .loggers = loggers} {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const TrainerConfig& config;
  LevinModule& module;
  TrainState& state;
  MetricStore& metrics;
  StopToken& stop;
  Strategy& strategy;
  Precision& precision;
  std::vector<CallbackPtr> callbacks;
  std::vector<std::shared_ptr<Logger>> loggers;
  LevinDataModule* datamodule = nullptr;  ///< whose hooks move batches in place of the module's
  BatchCounts* counts = nullptr;
  RunContext context;
  /// The place behind the batch in hand, where the walk had to look ahead of it.
  std::optional<data::LoaderState> train_place{};
  std::chrono::steady_clock::time_point last_validation = std::chrono::steady_clock::now();

  // Hooks are called by these alone, so that profilers see each of them.
  /// The hook of those callbacks for which `which` is true, in their order.
  template <class Which, class... P, class... A>
  void callbacks_do_where(const Which& which, void (Callback::*hook)(RunContext&, P...), A&&... args) {
    for (const auto& c : callbacks) {
      if (!which(*c)) continue;
      const ProfileScope scope(action_of(*c, hook), Phase::hooks);
      ((*c).*hook)(context, args...);
    }
  }
  /// The callbacks' hook, in their order.
  template <class... P, class... A>
  void callbacks_do(void (Callback::*hook)(RunContext&, P...), A&&... args) {
    callbacks_do_where([](const Callback&) { return true; }, hook, args...);
  }
  /// The module's hook.
  template <class R, class... Q, class... A>
  R module_do(R (LevinModule::*own)(Q...), A&&... args) {
    const ProfileScope scope(action_of(module, own), Phase::hooks);
    return (module.*own)(args...);
  }
  /// The callbacks' hook, then the module's of the same name.
  template <class... P, class... Q, class... A>
  void call(void (Callback::*hook)(RunContext&, P...), void (LevinModule::*own)(Q...), A&&... args) {
    callbacks_do(hook, args...);
    module_do(own, args...);
  }
  /// The network's as a checkpoint has them; where ranks have parts, whole on rank zero, and all ranks call.
  StateDict weights() const;
  /// This rank's own weights, while the module has the average of all (AverageInPlace).
  const StateDict* own_weights = nullptr;
  /// What callbacks and module add to a checkpoint.
  StateMap user_state();

  /// A batch on the device, by the three hooks of its transfer.
  Batch to_device(Batch batch);

  /// How many of a loader's batches take part.
  std::int64_t limit(const BatchLimit& asked, const data::DataLoader& loader, const char* option) const;
  /// The loaders of an evaluation with their limits; empty where there are none.
  EvalPlan eval_plan(Stage stage, const DataSource& source);

  /// What signals and stop requests have come to any rank so far. All ranks ask together; what follows is as of then.
  /// `more` are flags of the caller's, which become those of all ranks.
  void agree(std::span<std::uint8_t> more = {});
  int signal() const { return signal_; }  ///< SIGINT, SIGTERM or 0
  bool requeue_asked() const { return requeue_; }
  /// To be asked between steps: whether training should end before its planned end.
  bool stop_requested() const {
    return stopping_ && state.epoch + (state.epoch_complete ? 1 : 0) >= config.min_epochs &&
           state.global_step >= config.min_steps;
  }

  void log_values(const MetricStore::Values& values);
  void log_begin();  ///< the network and its hyper-parameters
  void flush_loggers();
  /// Runs f on every logger; an exception is reported once, since a log that cannot be written is no reason to lose the
  /// training.
  template <class F>
  void with_loggers(const char* what, const F& f) {
    for (const auto& logger : loggers) {
      Logger& sink = *logger;
      try {
        const ProfileScope scope([&] { return "[Logger]" + short_type_name(typeid(sink)) + "." + what; },
                                 Phase::logging);
        f(sink);
      } catch (const std::exception& e) {
        warn_of_loggers(e);
      }
    }
  }

 private:
  void warn_of_loggers(const std::exception& e);
  bool warned_ = false;
  int signal_ = 0;
  bool requeue_ = false, stopping_ = false;
  std::vector<std::uint8_t> flags_;  // that ranks agree on; kept for its memory
};

}  // namespace levin
