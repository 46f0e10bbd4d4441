#include "src/loops/run.h"

#include <levin/core/warning.h>

#include <fmt/format.h>

#include "src/checkpoint/full_state_dict.h"
#include "src/logging.h"
#include "src/module/overridden.h"

namespace levin {
namespace {

/// Returns the step that this stage needs and the module lacks; null if none. predict_step has a default.
const char* missing_step(Stage stage, const LevinModule& module) {
  using Step = void (LevinModule::*)(const Batch&, int);
  using LoaderStep = void (LevinModule::*)(const Batch&, int, int);
  const auto missing = [&](Step step, LoaderStep of_loader) {
    return !overrides(module, step) && !overrides(module, of_loader);
  };
  if (stage == Stage::predict) return nullptr;
  if (stage == Stage::test) return missing(&LevinModule::test_step, &LevinModule::test_step) ? "test_step" : nullptr;
  return missing(&LevinModule::validation_step, &LevinModule::validation_step) ? "validation_step" : nullptr;
}

/// Converts a value for loggers: lists become text.
Hyperparameter hyperparameter(const StateValue& value) {
  return std::visit(
      [](const auto& v) -> Hyperparameter {
        if constexpr (std::constructible_from<Hyperparameter, decltype(v)>)
          return v;
        else
          return fmt::format("{}", fmt::join(v, ", "));
      },
      value);
}

}  // namespace

void Run::warn_of_loggers(const std::exception& e) {
  if (!std::exchange(warned_, true)) logging::warn("the log is incomplete: {}", e.what());
}

void Run::agree(std::span<std::uint8_t> more) {
  const int signal = config.handle_signals ? SignalGuard::received() : 0;
  const bool requeue = config.handle_signals && SignalGuard::requeue_asked();
  flags_.assign({static_cast<std::uint8_t>(signal), static_cast<std::uint8_t>(requeue),
                 static_cast<std::uint8_t>(stop.requested())});
  flags_.insert(flags_.end(), more.begin(), more.end());
  strategy->any(flags_);
  signal_ = flags_[0];
  requeue_ = flags_[1] != 0;
  stopping_ = flags_[2] != 0;
  if (stopping_ && !stop.requested()) stop.request("another rank requested it");
  std::copy(flags_.begin() + 3, flags_.end(), more.begin());
}

std::int64_t Run::limit(const BatchLimit& asked, const data::DataLoader& loader, const char* option) const {
  const std::int64_t n = batches_of(asked, loader, option);
  if (config.fast_dev_run <= 0) return n;
  return n < 0 ? config.fast_dev_run : std::min(n, config.fast_dev_run);
}

EvalPlan Run::eval_plan(const DataSource& source) {
  const bool validates = stage == Stage::fit || stage == Stage::validate;
  const bool overfits = stage == Stage::fit && config.overfits();
  const BatchLimit& asked = overfits               ? config.overfit_batches
                            : validates            ? config.limit_val_batches
                            : stage == Stage::test ? config.limit_test_batches
                                                   : config.limit_predict_batches;
  const char* option = overfits               ? "--overfit-batches"
                       : validates            ? "--limit-val-batches"
                       : stage == Stage::test ? "--limit-test-batches"
                                              : "--limit-predict-batches";
  EvalPlan plan;
  // A fit without validation requests no data.
  if (stage == Stage::fit && asked.is_zero()) return plan;
  if (const char* step = missing_step(stage, module)) {
    const std::string what = fmt::format("{} has no {}", module.type_name(), step);
    if (stage != Stage::fit)
      throw UsageError(fmt::format("[{}] {}. Write one.", stage == Stage::test ? "test" : "validate", what));
    if (source.given.val) warn_once(fmt::format("[fit] {}: its loaders are ignored.", what));
    return plan;
  }
  std::vector<LoaderPtr> own;
  for (LoaderPtr loader : source.eval(stage, module)) {
    if (overfits) loader = in_order(loader);
    if (config.use_distributed_sampler) loader = shared_out(loader, *strategy, /*pad=*/false);
    own.push_back(loader);
  }
  plan.loaders = own;
  for (const auto& loader : plan.loaders) {
    const auto batches = static_cast<double>(limit(asked, *loader, option));
    plan.batches.push_back(static_cast<std::int64_t>(strategy->reduce(batches, ReduceOp::max)));
  }
  (validates ? counts.val : stage == Stage::test ? counts.test : counts.predict) = plan.batches;
  return plan;
}

Batch Run::to_device(Batch batch) {
  const ProfileScope scope([&] { return fmt::format("[Strategy]{}.batch_to_device", strategy->name()); },
                           Phase::transfer);
  const auto by = [&](auto& hooks) {
    Batch moved = hooks.on_before_batch_transfer(std::move(batch));
    moved = hooks.transfer_batch_to_device(std::move(moved), strategy->device());
    return hooks.on_after_batch_transfer(std::move(moved));
  };
  return datamodule ? by(*datamodule) : by(module);
}

StateDict Run::weights() const { return own_weights ? *own_weights : full_state_dict(*strategy, *precision, module); }

void Run::log_values(const MetricStore::Values& values) {
  if (values.empty()) return;
  with_loggers("log_metrics",
               [&](Logger& l) { l.log_metrics({.epoch = state.epoch, .step = state.global_step, .values = values}); });
}

StateMap Run::user_state() {
  StateMap user;
  call(&Callback::on_save_checkpoint, &LevinModule::on_save_checkpoint, user);
  return user;
}

void Run::log_begin() {
  with_loggers("log_model", [&](Logger& l) { l.log_model(module); });
  if (!config.enable_autolog_hparams || module.hparams().empty()) return;
  Hyperparameters values;
  for (const auto& [name, value] : module.hparams().values()) values.emplace_back(name, hyperparameter(value));
  with_loggers("log_hyperparams", [&](Logger& l) { l.log_hyperparams(values); });
}

void Run::flush_loggers() {
  with_loggers("save", [](Logger& l) { l.save(); });
}

}  // namespace levin
