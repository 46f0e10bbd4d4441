#include <levin/core/error.h>
#include <levin/trainer/checkpoint/checkpoint_plan.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin {
namespace {

void check(const When& w) {
  const bool timed = w.time.has_value();
  if (w.steps < 0 || w.epochs < 0 || (timed && w.time->seconds() <= 0) ||
      (w.steps > 0) + (w.epochs > 0) + (timed ? 1 : 0) > 1)
    throw UsageError(
        fmt::format("[ModelCheckpoint] every_n_epochs is {}, every_n_train_steps {} and train_time_interval {} s. Give "
                    "at most one of them, as a positive number.",
                    w.epochs, w.steps, timed ? w.time->seconds() : 0.0));
}

std::string text(const When& w) {
  if (w.steps > 0) return w.steps == 1 ? "after every step" : fmt::format("every {} steps", w.steps);
  if (w.time) return fmt::format("every {:g} seconds, after a batch", w.time->seconds());
  const std::string epochs = w.epochs > 1 ? fmt::format("every {} epochs", w.epochs) : "after every epoch";
  if (!w.on_train_epoch_end) return epochs + " (after every validation instead, unless there is one per epoch)";
  if (*w.on_train_epoch_end) return epochs;
  return w.epochs > 1 ? fmt::format("after the validations of every {}th epoch", w.epochs) : "after every validation";
}

std::string text(const CheckpointPlan::Rule& r, bool has_pointer) {
  const std::string when = text(r.when), size = r.mode == Mode::min ? "smallest" : "largest";
  const std::string newest = has_pointer ? "; `best` names the newest.\n" : ".\n";
  if (r.monitor.empty())
    return r.k < 0 ? fmt::format("Saves {} and keeps them all{}", when, newest)
           : r.k == 1
               ? fmt::format("Saves {} and keeps the newest{}\n", when, has_pointer ? ", which `best` names." : ".")
               : fmt::format("Saves {} and keeps the {} newest{}", when, r.k, newest);
  const std::string best =
      has_pointer ? fmt::format("; `best` names the one with the {} {}.\n", size, r.monitor) : ".\n";
  if (r.k < 0) return fmt::format("Saves {} and keeps them all{}", when, best);
  if (r.k == 1)
    return fmt::format("Saves {} if {} is the {} so far, and keeps that one{}\n", when, r.monitor, size,
                       has_pointer ? ", which `best` names." : ".");
  return fmt::format("Saves {} if {} is among the {} {} so far, and keeps those{}", when, r.monitor, r.k, size, best);
}

}  // namespace

CheckpointPlan&& CheckpointPlan::every(const When& when) && {
  check(when);
  rules.push_back({.when = when, .k = -1});
  return std::move(*this);
}

CheckpointPlan&& CheckpointPlan::best(std::int64_t k, const std::string& metric, Mode mode, const When& when) && {
  check(when);
  if (k < -1) throw UsageError(fmt::format("[ModelCheckpoint] save_top_k is {}. Give -1, 0 or more.", k));
  if (k != 0) rules.push_back({.when = when, .k = k, .monitor = metric, .mode = mode});
  return std::move(*this);
}

CheckpointPlan&& CheckpointPlan::last(const When& when) && {
  check(when);
  last_when = when;
  return std::move(*this);
}

CheckpointPlan&& CheckpointPlan::on_exception() && {
  saves_on_exception = true;
  return std::move(*this);
}

std::string CheckpointPlan::explain() const {
  std::string out;
  const auto watches = [](const Rule& r) { return !r.monitor.empty(); };
  const auto best = std::find_if(rules.begin(), rules.end(), watches);
  const Rule* named = best != rules.end() ? &*best : rules.empty() ? nullptr : &rules.front();
  for (const Rule& r : rules) out += text(r, &r == named);
  if (last_when)
    out += fmt::format("Saves {} and keeps the newest of all, which `last` names: training resumes from there.\n",
                       text(*last_when));
  if (saves_on_exception) out += "Saves when an exception ends the run; `last` names it.\n";
  if (out.empty()) out = "Saves nothing during training.\n";
  return out +
         "Saves when a signal ends the run; `last` names it.\n"
         "A checkpoint that none of these needs any more is removed once the new one is safe on disk.\n";
}

}  // namespace levin
