#include <levin/trainer/callbacks/model_checkpoint.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "src/checkpoint/checkpoint_name.h"
#include "src/logging.h"
#include "src/metrics/unknown_monitor.h"

namespace levin {
namespace {

namespace fs = std::filesystem;

bool says_when_or_which(const ModelCheckpointOptions& o) {
  const ModelCheckpointOptions none;
  return !o.monitor.empty() || o.mode != none.mode || o.save_top_k != none.save_top_k ||
         o.save_last != none.save_last || o.save_on_exception || o.every_n_epochs != 0 || o.every_n_train_steps != 0 ||
         o.train_time_interval || o.save_on_train_epoch_end;
}

CheckpointPlan plan_of(const ModelCheckpointOptions& o) {
  const When when{.steps = o.every_n_train_steps,
                  .epochs = o.every_n_epochs,
                  .time = o.train_time_interval,
                  .on_train_epoch_end = o.save_on_train_epoch_end};
  if (o.save_top_k > 1 && o.monitor.empty())
    throw UsageError(fmt::format("[ModelCheckpoint] save_top_k is {} without a monitor. Name the value to compare by.",
                                 o.save_top_k));
  CheckpointPlan plan = CheckpointPlan().best(o.save_top_k, o.monitor, o.mode, when);
  if (o.save_last) plan.last_when = when;
  plan.saves_on_exception = o.save_on_exception;
  return plan;
}

std::string below(const fs::path& dir, const std::string& name) { return dir / name; }

std::string absolute_text(const fs::path& path) { return fs::absolute(path).lexically_normal().string(); }

bool better(const CheckpointPlan::Rule& rule, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a) && std::isnan(b);
  return rule.mode == Mode::max || rule.monitor.empty() ? a > b : a < b;
}

/// Returns the rule of `best`: the first that has a monitor, else the first; null if there is none.
template <class Rules>
auto best_rule(const Rules& rules) {
  const auto found = std::find_if(rules.begin(), rules.end(), [](const auto& r) { return !r.says.monitor.empty(); });
  return found != rules.end() ? &*found : rules.empty() ? nullptr : &rules.front();
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(const ModelCheckpointOptions& options) : plan_(plan_of(options)), options_(options) {
  (void)NameTemplate(options_.filename, options_.auto_insert_metric_name);
  for (const auto& rule : plan_.rules) rules_.push_back({rule});
}

ModelCheckpoint::ModelCheckpoint(CheckpointPlan plan, const ModelCheckpointOptions& options)
    : plan_(std::move(plan)), options_(options) {
  if (says_when_or_which(options))
    throw UsageError("[ModelCheckpoint] a plan was given, and options that say when or which. Say that in the plan.");
  (void)NameTemplate(options_.filename, options_.auto_insert_metric_name);
  for (const auto& rule : plan_.rules) rules_.push_back({rule});
}

// --- queries

std::string ModelCheckpoint::find(const std::string& which) const {
  if (which == "best") {
    const auto* rule = best_rule(rules_);
    return rule && !rule->kept.empty() ? below(dir_, rule->kept.front().name) : best_elsewhere_;
  }
  if (which == "last" && !last_.empty()) return below(dir_, last_);
  return {};
}

std::optional<double> ModelCheckpoint::best_model_score() const {
  const auto* rule = best_rule(rules_);
  if (!rule || rule->kept.empty() || rule->says.monitor.empty()) return std::nullopt;
  return rule->kept.front().score;
}

std::vector<std::pair<std::string, double>> ModelCheckpoint::best_k_models() const {
  std::vector<std::pair<std::string, double>> out;
  if (const auto* rule = best_rule(rules_))
    for (const Kept& k : rule->kept) out.emplace_back(below(dir_, k.name), k.score);
  return out;
}

std::string ModelCheckpoint::kth_best_model_path() const {
  return kth_value() ? below(dir_, best_rule(rules_)->kept.back().name) : std::string();
}

std::optional<double> ModelCheckpoint::kth_value() const {
  const auto* rule = best_rule(rules_);
  if (!rule || std::ssize(rule->kept) != rule->says.k) return std::nullopt;
  return rule->kept.back().score;
}

std::string ModelCheckpoint::explain() const {
  std::string out = plan_.explain();
  if (options_.save_weights_only) out += "Only weights are saved: training cannot resume from them.\n";
  if (options_.continue_on_error)
    out += "If a checkpoint cannot be written, a warning is logged and training continues.\n";
  const std::string& dir = dir_.empty() ? options_.dirpath : dir_;
  return out + fmt::format("Each is a folder {} in {}.\n", options_.filename,
                           dir.empty() ? std::string("checkpoints, below default_root_dir") : dir);
}

// --- state

std::string ModelCheckpoint::state_key() const { return "ModelCheckpoint/" + monitor(); }

std::string ModelCheckpoint::monitor() const {
  const auto* rule = best_rule(rules_);
  return rule ? rule->says.monitor : std::string();
}

StateMap ModelCheckpoint::state() const {
  StateMap s;
  s.set("dirpath", absolute_text(dir_));
  const std::string best = best_model_path();
  s.set("best_model_path", best.empty() ? std::string() : absolute_text(best));
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    std::vector<std::string> names;
    std::vector<double> scores;
    for (const Kept& k : rules_[i].kept) {
      names.push_back(k.name);
      scores.push_back(k.score);
    }
    s.set(fmt::format("rule{}/best_k_models", i), names);
    s.set(fmt::format("rule{}/best_k_scores", i), scores);
    s.set(fmt::format("rule{}/deferred", i), static_cast<std::int64_t>(rules_[i].deferred));
  }
  if (current_score_) s.set("current_score", *current_score_);
  s.set("last_model", last_);
  s.set("last_global_step_saved", last_step_);
  s.set("last_saved", last_saved_);
  s.set("validated", static_cast<std::int64_t>(validated_));
  return s;
}

void ModelCheckpoint::load_state(const StateMap& s) {
  last_step_ = s.get<std::int64_t>("last_global_step_saved");
  validated_ = s.get<std::int64_t>("validated") != 0;
  current_score_.reset();
  if (s.has("current_score")) current_score_ = s.get<double>("current_score");
  for (Rule& rule : rules_) rule.kept.clear();
  last_.clear();
  last_saved_.clear();
  best_elsewhere_ = s.get<std::string>("best_model_path");
  const auto there = s.get<std::string>("dirpath");
  if (there != absolute_text(dir_)) {
    if (!best_elsewhere_.empty())
      logging::warn(
          "checkpoints are saved to {} from now on; those in {} are kept, and only the best of them is remembered",
          dir_, there);
    return;
  }
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const StateMap part = s.part(fmt::format("rule{}", i));
    if (part.empty()) continue;  // the plan has more rules than the checkpoint
    const auto names = part.get<std::vector<std::string>>("best_k_models");
    const auto scores = part.get<std::vector<double>>("best_k_scores");
    for (std::size_t k = 0; k < std::min(names.size(), scores.size()); ++k)
      rules_[i].kept.push_back({names[k], scores[k]});
    rules_[i].deferred = part.get<std::int64_t>("deferred") != 0;
  }
  last_ = s.get<std::string>("last_model");
  last_saved_ = s.get<std::string>("last_saved");
}

void ModelCheckpoint::setup(RunContext& run) {
  dir_ = options_.dirpath.empty() ? below(run.root_dir, "checkpoints") : options_.dirpath;
}

void ModelCheckpoint::on_fit_start(RunContext& run) {
  if (!run.resumed) {
    last_step_ = -1;
    validated_ = false;
  }
  last_timer_ = monotonic_seconds();
  for (Rule& rule : rules_) rule.timer = last_timer_;
  if (options_.verbose) logging::info("checkpoints:\n{}", explain());
}

// --- decisions

bool ModelCheckpoint::Rule::wants(double score) const {
  return says.k < 0 || std::ssize(kept) < says.k || better(says, score, kept.back().score);
}

bool ModelCheckpoint::is_due(const When& w, double timer, const RunContext& run, SavePoint point) {
  if (w.steps > 0)
    return point == SavePoint::train_batch_end && run.state.micro == 0 && run.state.global_step % w.steps == 0;
  if (w.time) return point == SavePoint::train_batch_end && monotonic_seconds() - timer >= w.time->seconds();
  const auto& c = run.config;
  const CheckInterval& between = c.val_check_interval;
  const bool validations_differ =
      run.eval_batches > 0 && (c.check_val_every_n_epoch != 1 || between.time() || between.batches().is_count() ||
                               between.batches().fraction() != 1.0);
  const bool at_epoch_end = w.on_train_epoch_end.value_or(!validations_differ);
  return point == (at_epoch_end ? SavePoint::train_epoch_end : SavePoint::validation_end) &&
         (run.state.epoch + 1) % std::max<std::int64_t>(w.epochs, 1) == 0;
}

bool ModelCheckpoint::due(const RunContext& run, SavePoint point) {
  if (point == SavePoint::validation_end) validated_ = true;
  const bool metrics_came = point == (run.eval_batches > 0 ? SavePoint::validation_end : SavePoint::train_epoch_end);
  return (plan_.last_when && is_due(*plan_.last_when, last_timer_, run, point)) ||
         std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
           return (rule.deferred && metrics_came) || is_due(rule.says.when, rule.timer, run, point);
         });
}

/// Returns the value by which a rule that is due compares; nothing if the rule has to wait for it.
std::optional<double> ModelCheckpoint::score(Rule& rule, const RunContext& run, SavePoint point) {
  if (rule.says.monitor.empty()) return static_cast<double>(run.state.global_step);
  const auto value = run.metrics.find(rule.says.monitor);
  rule.deferred = !value;
  const bool may_come = point == SavePoint::train_batch_end || (run.eval_batches > 0 && !validated_);
  if (!value && !may_come) throw UsageError(unknown_monitor("ModelCheckpoint", rule.says.monitor, run.metrics));
  if (value) current_score_ = value;
  return value;
}

std::vector<CheckpointAction> ModelCheckpoint::decide(RunContext& run, SavePoint point) {
  std::vector<std::pair<Rule*, double>> into;
  const bool metrics_came = point == (run.eval_batches > 0 ? SavePoint::validation_end : SavePoint::train_epoch_end);
  for (Rule& rule : rules_) {
    if (!(rule.deferred && metrics_came) && !is_due(rule.says.when, rule.timer, run, point)) continue;
    rule.timer = monotonic_seconds();
    const auto value = score(rule, run, point);
    const bool has_it =
        run.state.global_step == last_step_ &&
        std::any_of(rule.kept.begin(), rule.kept.end(), [&](const Kept& k) { return k.name == last_saved_; });
    if (value && !has_it && rule.wants(*value)) into.emplace_back(&rule, *value);
  }
  const bool as_last = plan_.last_when && is_due(*plan_.last_when, last_timer_, run, point);
  if (as_last) last_timer_ = monotonic_seconds();
  return save(run, into, as_last);
}

/// Adds the checkpoint of this step to the lists of these rules, and as `last`.
std::vector<CheckpointAction> ModelCheckpoint::save(RunContext& run, const std::vector<std::pair<Rule*, double>>& into,
                                                    bool as_last) {
  const bool written = run.state.global_step == last_step_ && !last_saved_.empty() && keeps(last_saved_);
  if (into.empty() && (!as_last || (run.state.global_step == last_step_ && last_ == last_saved_))) return {};
  const bool had_last = !last_.empty();
  const std::vector<std::string> before = names();
  const std::string unnamed = "/";  // not a valid folder name
  for (const auto& [rule, value] : into) {
    auto& kept = rule->kept;
    const auto at = std::find_if(kept.begin(), kept.end(), [&, &says = rule->says, &score = value](const Kept& k) {
      return better(says, score, k.score);
    });
    kept.insert(at, {unnamed, value});
    if (rule->says.k >= 0 && std::ssize(kept) > rule->says.k) kept.pop_back();
  }
  last_ = plan_.last_when ? unnamed : std::string();
  const std::string name = written ? last_saved_ : free_name(run, "", before);
  for (Rule& rule : rules_) {
    if (!written) std::erase_if(rule.kept, [&](const Kept& k) { return k.name == name; });  // replaced
    for (Kept& k : rule.kept)
      if (k.name == unnamed) k.name = name;
  }
  if (plan_.last_when) last_ = name;
  last_step_ = run.state.global_step;
  last_saved_ = name;
  if (options_.verbose && !written) logging::info("saves {}", below(dir_, name));
  auto actions = actions_for(written ? std::string() : name, before);
  if (had_last && last_.empty())  // it belonged to an interrupted run, and no rule keeps it
    actions.push_back({CheckpointAction::Kind::remove, below(dir_, "last"), {}});
  return actions;
}

std::vector<CheckpointAction> ModelCheckpoint::save_at_end(RunContext& run, const std::string& prefix) {
  const std::vector<std::string> before = names();
  last_ = "/";
  last_ = free_name(run, prefix, before);
  return actions_for(last_, before);
}

std::vector<CheckpointAction> ModelCheckpoint::decide_interrupted(RunContext& run) {
  return save_at_end(run, "interrupted-");
}

std::vector<CheckpointAction> ModelCheckpoint::decide_exception(RunContext& run) {
  if (!plan_.saves_on_exception) return {};
  return save_at_end(run, "exception-");
}

/// Saves the new folder first, then moves the pointers, then removes what is no longer needed: a crash in between
/// leaves only extra files.
std::vector<CheckpointAction> ModelCheckpoint::actions_for(const std::string& saved,
                                                           const std::vector<std::string>& before) const {
  using Kind = CheckpointAction::Kind;
  std::vector<CheckpointAction> actions;
  if (!saved.empty()) actions.push_back({Kind::save, below(dir_, saved), {}, options_.save_weights_only});
  if (const auto* rule = best_rule(rules_); rule && !rule->kept.empty())
    actions.push_back({Kind::point, below(dir_, "best"), rule->kept.front().name});
  if (!last_.empty()) actions.push_back({Kind::point, below(dir_, "last"), last_});
  for (const auto& name : before)
    if (!keeps(name)) actions.push_back({Kind::remove, below(dir_, name), {}});
  return actions;
}

std::vector<std::string> ModelCheckpoint::names() const {
  std::vector<std::string> out;
  for (const Rule& rule : rules_)
    for (const Kept& k : rule.kept) out.push_back(k.name);
  if (!last_.empty()) out.push_back(last_);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

bool ModelCheckpoint::keeps(const std::string& name) const {
  return name == last_ || std::any_of(rules_.begin(), rules_.end(), [&](const Rule& rule) {
           return std::any_of(rule.kept.begin(), rule.kept.end(), [&](const Kept& k) { return k.name == name; });
         });
}

/// Returns an unused name; one of `before` counts as unused if it is no longer kept.
std::string ModelCheckpoint::free_name(const RunContext& run, const std::string& prefix,
                                       const std::vector<std::string>& before) const {
  const std::string base = prefix + NameTemplate(options_.filename, options_.auto_insert_metric_name)(run);
  const auto taken = [&](const std::string& name) {
    const bool own = std::find(before.begin(), before.end(), name) != before.end();
    return own ? keeps(name) : fs::exists(fs::symlink_status(below(dir_, name)));
  };
  std::string name = base;
  for (int version = 1; options_.enable_version_counter && taken(name); ++version)
    name = fmt::format("{}-v{}", base, version);
  return name;
}

}  // namespace levin
