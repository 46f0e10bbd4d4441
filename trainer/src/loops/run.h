#pragma once
// State shared by the loops of one fit, validate, test or predict, and how hooks are called.

#include <levin/trainer/callback.h>
#include <levin/trainer/loggers/logger.h>
#include <levin/trainer/module.h>
#include <levin/trainer/precision.h>
#include <levin/trainer/signals.h>
#include <levin/trainer/strategy.h>

#include <algorithm>
#include <chrono>
#include <span>

#include "src/loops/data_source.h"

#include "src/profilers/actions.h"

namespace levin {

using Scope = MetricStore::Scope;

/// Batches per epoch and per evaluation loader, after limits; -1 if unknown.
struct BatchCounts {
  std::optional<std::int64_t> train{};
  std::vector<std::int64_t> val{}, sanity_val{}, test{}, predict{};
};

/// The run as the loops see it: the context that callbacks get, and what callbacks have no access to.
struct Run : RunContext {
  Run(RunContext context, TrainState& state_, std::vector<CallbackPtr> callbacks_, LevinDataModule* datamodule_,
      BatchCounts& counts_)
      : RunContext(std::move(context)),
        state(state_),
        callbacks(std::move(callbacks_)),
        datamodule(datamodule_),
        counts(counts_) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  TrainState& state;  ///< the context's, which only the loops change
  std::vector<CallbackPtr> callbacks;
  LevinDataModule* datamodule;  ///< if set, its hooks transfer batches in place of the module's
  BatchCounts& counts;
  /// Position after the current batch, if the loop had to fetch the next one already.
  std::optional<data::LoaderState> train_place{};
  std::chrono::steady_clock::time_point last_validation = std::chrono::steady_clock::now();

  // All hooks are called through these functions, so that profilers see each of them.
  /// Calls the hook of those callbacks for which `which` is true, in order.
  template <class Which, class... P, class... A>
  void callbacks_do_where(const Which& which, void (Callback::*hook)(RunContext&, P...), A&&... args) {
    for (const auto& c : callbacks) {
      if (!which(*c)) continue;
      const ProfileScope scope(action_of(*c, hook), Phase::hooks);
      ((*c).*hook)(*this, args...);
    }
  }
  /// Calls the callbacks' hook, in order.
  template <class... P, class... A>
  void callbacks_do(void (Callback::*hook)(RunContext&, P...), A&&... args) {
    callbacks_do_where([](const Callback&) { return true; }, hook, args...);
  }
  /// Calls the module's hook.
  template <class R, class... Q, class... A>
  R module_do(R (LevinModule::*own)(Q...), A&&... args) {
    const ProfileScope scope(action_of(module, own), Phase::hooks);
    return (module.*own)(args...);
  }
  /// Calls the callbacks' hook, then the module's of the same name.
  template <class... P, class... Q, class... A>
  void call(void (Callback::*hook)(RunContext&, P...), void (LevinModule::*own)(Q...), A&&... args) {
    callbacks_do(hook, args...);
    module_do(own, args...);
  }
  /// Returns the full state dict for a checkpoint. With sharded weights it is complete on rank zero only, and the call
  /// is collective.
  StateDict weights() const;
  /// This rank's own weights while the module holds the average (AverageInPlace).
  const StateDict* own_weights = nullptr;
  /// Returns the state that callbacks and module add to a checkpoint.
  StateMap user_state();

  /// Moves a batch to the device through the three transfer hooks.
  Batch to_device(Batch batch);

  /// Returns how many of a loader's batches are used.
  std::int64_t limit(const BatchLimit& asked, const data::DataLoader& loader, const char* option) const;
  /// Returns the loaders of this stage's evaluation with their limits; empty if there are none.
  EvalPlan eval_plan(const DataSource& source);

  /// Exchanges the signals and stop requests that any rank has received so far. Collective; the results below are as of
  /// this call. `more` are flags of the caller, which are or-ed over all ranks.
  void agree(std::span<std::uint8_t> more = {});
  int signal() const { return signal_; }  ///< SIGINT, SIGTERM or 0
  bool requeue_asked() const { return requeue_; }
  /// Called between steps: true if training should end before its planned end.
  bool stop_requested() const {
    return stopping_ && state.epoch + (state.epoch_complete ? 1 : 0) >= config.min_epochs &&
           state.global_step >= config.min_steps;
  }

  void log_values(const MetricStore::Values& values);
  void log_begin();  ///< logs the network and its hyper-parameters
  void flush_loggers();
  /// Calls f on every logger. An exception is reported once and otherwise ignored, since a failing log should not lose
  /// the training.
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
  std::vector<std::uint8_t> flags_;  // flags that ranks exchange; kept to reuse its memory
};

}  // namespace levin
