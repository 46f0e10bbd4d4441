#include <levin/trainer/model_checkpoint.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin {

ModelCheckpoint::ModelCheckpoint(ModelCheckpointOptions options) : options_(std::move(options)) {
  const auto& o = options_;
  if (o.save_top_k < -1)
    throw UsageError(fmt::format("[ModelCheckpoint] save_top_k is {}. Give -1, 0 or more.", o.save_top_k));
  if (o.save_top_k > 1 && o.monitor.empty())
    throw UsageError(fmt::format("[ModelCheckpoint] save_top_k is {} without a monitor. Name the value to compare by.",
                                 o.save_top_k));
  if (o.every_n_epochs < 0 || o.every_n_train_steps < 0 || (o.every_n_epochs > 0 && o.every_n_train_steps > 0))
    throw UsageError(fmt::format("[ModelCheckpoint] every_n_epochs is {} and every_n_train_steps {}. Give one of them, "
                                 "as a positive number.", o.every_n_epochs, o.every_n_train_steps));
}

std::optional<double> ModelCheckpoint::best_model_score() const {
  if (best_.empty() || options_.monitor.empty()) return std::nullopt;
  return best_.front().score;
}

std::string ModelCheckpoint::explain() const {
  const auto& o = options_;
  const std::string when = o.every_n_train_steps > 0 ? fmt::format("every {} steps", o.every_n_train_steps)
                           : o.every_n_epochs > 0    ? fmt::format("every {} epochs", o.every_n_epochs)
                                                     : std::string("after every validation");
  const std::string what = o.save_top_k < 0        ? std::string("all checkpoints")
                           : o.monitor.empty()     ? fmt::format("the newest {}", o.save_top_k)
                           : o.mode == Mode::min   ? fmt::format("the {} with the smallest {}", o.save_top_k, o.monitor)
                                                   : fmt::format("the {} with the largest {}", o.save_top_k, o.monitor);
  return fmt::format("saves {}, keeps {}{}", when, what, o.save_last ? " and the last" : "");
}

StateMap ModelCheckpoint::state() const {
  std::vector<std::string> names;
  std::vector<double> scores;
  for (const auto& k : best_) {
    names.push_back(k.name);
    scores.push_back(k.score);
  }
  StateMap s;
  s.set("names", names);
  s.set("scores", scores);
  s.set("last", last_);
  s.set("last_step", last_step_);
  s.set("dir", std::filesystem::absolute(dir_).lexically_normal().string());
  return s;
}

void ModelCheckpoint::load_state(const StateMap& s) {
  last_step_ = s.get<std::int64_t>("last_step");
  // Checkpoints in another folder belong to another run: nothing there may be removed.
  if (s.get<std::string>("dir") != std::filesystem::absolute(dir_).lexically_normal().string()) return;
  const auto names = s.get<std::vector<std::string>>("names");
  const auto scores = s.get<std::vector<double>>("scores");
  best_.clear();
  for (std::size_t i = 0; i < std::min(names.size(), scores.size()); ++i) best_.push_back({names[i], scores[i]});
  last_ = s.get<std::string>("last");
}

void ModelCheckpoint::setup(RunContext& run) {
  dir_ = options_.dirpath.empty() ? run.root_dir / "checkpoints" : options_.dirpath;
}

bool ModelCheckpoint::is_due(const RunContext& run, SavePoint point) const {
  if (options_.save_top_k == 0 && !options_.save_last) return false;
  if (options_.every_n_train_steps > 0)
    return point == SavePoint::train_batch_end && run.state.micro == 0 && run.state.global_step != last_step_ &&
           run.state.global_step % options_.every_n_train_steps == 0;
  if (options_.every_n_epochs > 0)
    return point == SavePoint::train_epoch_end && (run.state.epoch + 1) % options_.every_n_epochs == 0;
  if (point == SavePoint::validation_end) return true;
  return point == SavePoint::train_epoch_end && run.state.global_step != last_step_;
}

std::optional<double> ModelCheckpoint::score(const RunContext& run) const {
  if (options_.monitor.empty()) return static_cast<double>(run.state.global_step);
  return run.metrics.find(options_.monitor);
}

bool ModelCheckpoint::better(double a, double b) const {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(a);  // NaN is the worst
  return options_.mode == Mode::max || options_.monitor.empty() ? a > b : a < b;
}

std::string ModelCheckpoint::name_for(const RunContext& run) const {
  std::string out;
  const std::string& pattern = options_.filename;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t close = pattern[i] == '{' ? pattern.find('}', i) : std::string::npos;
    if (close == std::string::npos) {
      out += pattern[i];
      continue;
    }
    const std::string field = pattern.substr(i + 1, close - i - 1);
    if (field == "epoch") out += fmt::format("epoch={}", run.state.epoch);
    else if (field == "step") out += fmt::format("step={}", run.state.global_step);
    else out += fmt::format("{}={:.4f}", field, run.metrics.find(field).value_or(0));
    i = close;
  }
  return out;
}

std::vector<CheckpointAction> ModelCheckpoint::keep(const std::string& name, std::optional<double> value) {
  using Kind = CheckpointAction::Kind;
  std::vector<std::string> before;
  for (const auto& k : best_) before.push_back(k.name);
  if (!last_.empty()) before.push_back(last_);

  std::erase_if(best_, [&](const Kept& k) { return k.name == name; });
  if (value && options_.save_top_k != 0) {
    const auto at = std::find_if(best_.begin(), best_.end(), [&](const Kept& k) { return better(*value, k.score); });
    best_.insert(at, {name, *value});
    if (options_.save_top_k > 0 && std::ssize(best_) > options_.save_top_k) best_.pop_back();
  }
  if (options_.save_last) last_ = name;

  const auto is_kept = [&](const std::string& n) {
    return n == last_ || std::any_of(best_.begin(), best_.end(), [&](const Kept& k) { return k.name == n; });
  };
  if (!is_kept(name)) return {};
  std::vector<CheckpointAction> actions{{Kind::save, dir_ / name, {}}};
  if (!best_.empty()) actions.push_back({Kind::point, dir_ / "best", best_.front().name});
  if (options_.save_last) actions.push_back({Kind::point, dir_ / "last", last_});
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  for (const auto& n : before)
    if (!is_kept(n)) actions.push_back({Kind::remove, dir_ / n, {}});
  return actions;
}

std::vector<CheckpointAction> ModelCheckpoint::decide(RunContext& run, SavePoint point) {
  if (!is_due(run, point)) return {};
  const auto value = score(run);
  if (!value) throw UsageError(unknown_monitor("ModelCheckpoint", options_.monitor, run.metrics));
  last_step_ = run.state.global_step;
  return keep(name_for(run), value);
}

std::vector<CheckpointAction> ModelCheckpoint::decide_interrupted(RunContext& run) {
  const bool last = std::exchange(options_.save_last, true);
  auto actions = keep("interrupted-" + name_for(run), std::nullopt);
  options_.save_last = last;
  return actions;
}

std::filesystem::path ModelCheckpoint::find(const std::string& which) const {
  if (which == "best" && !best_.empty()) return dir_ / best_.front().name;
  if (which == "last" && !last_.empty()) return dir_ / last_;
  return {};
}

}  // namespace levin
