#include "src/loops/eval_loop.h"

#include <levin/autograd/modes.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "src/loops/average_in_place.h"
#include "src/loops/replica_run.h"

namespace levin {
namespace {

using BatchHook = void (Callback::*)(RunContext&, const Batch&, int);
using Hook = void (Callback::*)(RunContext&);
using OwnBatchHook = void (LevinModule::*)(const Batch&, int);
using OwnHook = void (LevinModule::*)();

/// The corresponding hooks of the three stages.
struct Hooks {
  const char* name;
  Split split;
  OwnHook model_eval, model_train;
  Hook start, end, epoch_start, epoch_end;
  OwnHook own_start, own_end, own_epoch_start, own_epoch_end;
  BatchHook batch_start, batch_end;
  OwnBatchHook own_batch_start, own_batch_end;
};

constexpr Hooks kValidation = {"validation",
                               Split::validation,
                               &LevinModule::on_validation_model_eval,
                               &LevinModule::on_validation_model_train,
                               &Callback::on_validation_start,
                               &Callback::on_validation_end,
                               &Callback::on_validation_epoch_start,
                               &Callback::on_validation_epoch_end,
                               &LevinModule::on_validation_start,
                               &LevinModule::on_validation_end,
                               &LevinModule::on_validation_epoch_start,
                               &LevinModule::on_validation_epoch_end,
                               &Callback::on_validation_batch_start,
                               &Callback::on_validation_batch_end,
                               &LevinModule::on_validation_batch_start,
                               &LevinModule::on_validation_batch_end};

constexpr Hooks kTest = {"test",
                         Split::test,
                         &LevinModule::on_test_model_eval,
                         &LevinModule::on_test_model_train,
                         &Callback::on_test_start,
                         &Callback::on_test_end,
                         &Callback::on_test_epoch_start,
                         &Callback::on_test_epoch_end,
                         &LevinModule::on_test_start,
                         &LevinModule::on_test_end,
                         &LevinModule::on_test_epoch_start,
                         &LevinModule::on_test_epoch_end,
                         &Callback::on_test_batch_start,
                         &Callback::on_test_batch_end,
                         &LevinModule::on_test_batch_start,
                         &LevinModule::on_test_batch_end};

constexpr Hooks kPredict = {"predict",
                            Split::predict,
                            &LevinModule::on_predict_model_eval,
                            &LevinModule::on_predict_model_train,
                            &Callback::on_predict_start,
                            &Callback::on_predict_end,
                            &Callback::on_predict_epoch_start,
                            &Callback::on_predict_epoch_end,
                            &LevinModule::on_predict_start,
                            &LevinModule::on_predict_end,
                            &LevinModule::on_predict_epoch_start,
                            &LevinModule::on_predict_epoch_end,
                            &Callback::on_predict_batch_start,
                            &Callback::on_predict_batch_end,
                            &LevinModule::on_predict_batch_start,
                            &LevinModule::on_predict_batch_end};

const Hooks& hooks_of(Stage stage) {
  return stage == Stage::test ? kTest : stage == Stage::predict ? kPredict : kValidation;
}

/// Restores the mode of every submodule.
class ModeKeeper {
 public:
  explicit ModeKeeper(nn::Module& root) {
    for (const auto& [name, module] : root.named_modules()) modes_.emplace_back(module, module->is_training());
  }
  ~ModeKeeper() { restore(); }
  ModeKeeper(const ModeKeeper&) = delete;
  ModeKeeper& operator=(const ModeKeeper&) = delete;
  void restore() {
    for (const auto& [module, on] : modes_) module->train(on);  // parents first, so that children take precedence
  }

 private:
  std::vector<std::pair<nn::Module*, bool>> modes_;
};

/// Selects inference_mode, or no_grad if the user asked for it.
detail::AutogradModes eval_modes(bool inference) {
  auto modes = detail::autograd_modes;
  modes.grad = false;
  modes.inference = modes.inference || inference;
  return modes;
}

}  // namespace

void EvalLoop::validate(const EvalPlan& plan, std::function<void()> after_batch, bool resumed) {
  after_batch_ = std::move(after_batch);
  resumed_ = resumed;
  first_ = resumed ? run_.state.eval_batch : 0;
  run(plan);
  run_.state.eval_loader = run_.state.eval_batch = 0;
}

/// Returns how many batches were finished before the run resumed.
std::int64_t EvalLoop::batches_done(const EvalPlan& plan) const {
  std::int64_t done = first_;
  for (std::int64_t k = 0; resumed_ && k < run_.state.eval_loader; ++k)
    done += std::max<std::int64_t>(0, plan.batches.at(static_cast<std::size_t>(k)));
  return done;
}

bool EvalLoop::run(const EvalPlan& plan, Predictions* predictions) {
  const Hooks& h = hooks_of(stage_);
  const ProfileScope scope([&] { return fmt::format("run_{}_epoch", h.name); }, Phase::evaluation);
  run_.eval_batches = plan.total();
  run_.eval_batches_done = batches_done(plan);
  if (predictions) predictions->assign(plan.loaders.size(), {});
  several_ = plan.loaders.size() > 1;
  std::optional<AverageInPlace> average;
  if (stage_ == Stage::fit) average.emplace(run_);
  ModeKeeper modes(run_.module);
  const ModeGuard guard(eval_modes(run_.config.inference_mode));
  run_.strategy->broadcast_buffers(run_.module);
  run_.module_do(h.model_eval);
  if (!resumed_) {
    run_.metrics.start_epoch(h.split);
    run_.metrics.set_scope(Scope::epoch, h.split);
    run_.call(h.start, h.own_start);
    run_.call(h.epoch_start, h.own_epoch_start);
  }
  for (auto k = static_cast<std::size_t>(resumed_ ? run_.state.eval_loader : 0); k < plan.loaders.size(); ++k)
    if (!run_batches(plan.loaders[k], static_cast<int>(k), plan.batches[k],
                     predictions ? &predictions->at(k) : nullptr))
      return false;
  run_.metrics.set_scope(Scope::epoch, h.split);
  run_.metrics.finish_epoch(h.split);
  run_.call(h.epoch_end, h.own_epoch_end);
  run_.metrics.finish_epoch(h.split);  // includes values logged by these hooks
  run_.metrics.set_scope(Scope::closed, h.split);
  if (!run_.sanity_checking) run_.log_values(run_.metrics.epoch_values(h.split));
  run_.call(h.end, h.own_end);
  modes.restore();
  run_.module_do(h.model_train);
  return true;
}

bool EvalLoop::run_batches(data::DataLoader& loader, int which, std::int64_t batches,
                           std::vector<Tensor>* predictions) {
  if (batches >= 0 && first_ >= batches) {  // no batch is left: the next iteration starts a new epoch
    if (std::exchange(first_, 0) > 0) loader.set_epoch(loader.state().epoch + 1);
    return true;
  }
  auto it = loader.begin();
  // A rank may have one batch less than others; it still takes part in the collectives.
  const auto more = [&](std::int64_t i) { return (batches < 0 || i < batches) && it != loader.end(); };
  for (std::int64_t i = std::exchange(first_, 0); run_.strategy->any(more(i)); ++i) {
    if (more(i)) {
      if (several_) it->dataloader_idx = which;
      run_batch(*it, static_cast<int>(i), which, predictions);
    }
    if (after_batch_) {
      run_.state.eval_loader = which;
      run_.state.eval_batch = i + 1;
      after_batch_();
    } else {
      run_.agree();
      if (run_.signal() != 0) return false;
    }
    if (more(i) && (batches < 0 || i + 1 < batches)) ++it;
  }
  return true;
}

void EvalLoop::run_batch(const Batch& given, int index, int which, std::vector<Tensor>* predictions) {
  const Hooks& h = hooks_of(stage_);
  Batch batch = run_.precision->convert(run_.to_device(given));
  batch.dataloader_idx = given.dataloader_idx;  // a hook may have made another batch
  run_.metrics.set_scope(Scope::eval_step, h.split, batch.size(), several_ ? which : -1);
  run_.call(h.batch_start, h.own_batch_start, std::as_const(batch), index);
  step(batch, index, predictions);
  ++run_.eval_batches_done;
  run_.call(h.batch_end, h.own_batch_end, std::as_const(batch), index);
  run_.metrics.set_scope(Scope::closed, h.split);
}

void EvalLoop::step(const Batch& batch, int index, std::vector<Tensor>* predictions) {
  const auto scope = run_.precision->step_scope();
  const auto outputs =
      run_on_replicas(run_.module, *run_.strategy, batch, [&](std::size_t, auto& m, const Batch& part) {
        if (stage_ == Stage::predict) return std::vector<Tensor>{m.predict_step(part, index, part.dataloader_idx)};
        if (stage_ == Stage::test)
          m.test_step(part, index, part.dataloader_idx);
        else
          m.validation_step(part, index, part.dataloader_idx);
        return std::vector<Tensor>();
      });
  if (stage_ != Stage::predict) return;
  run_.prediction = outputs[0];
  if (predictions) predictions->push_back(outputs[0]);
}

}  // namespace levin
