#include <levin/core/io.h>
#include <levin/trainer/profilers/profiler.h>

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "src/profilers/stage_file.h"

namespace levin {
namespace {

const char* name_of(Stage stage) {
  constexpr const char* kNames[] = {"fit", "validate", "test", "predict"};
  return kNames[static_cast<int>(stage)];
}

/// True for phases that include everything nested in them.
bool swallows(Phase phase) { return phase == Phase::evaluation || phase == Phase::checkpoint; }

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

SimpleProfiler::SimpleProfiler(SimpleProfilerOptions options) : options_(std::move(options)) {}

void SimpleProfiler::setup(Stage stage, const std::string& root) {
  stage_ = stage;
  root_ = root;
  records_.clear();
  phases_.clear();
  open_.clear();
  wall_ = 0;
}

void SimpleProfiler::start(const std::string& action, Phase phase) {
  const auto record = records_.try_emplace(action, Record{.phase = phase}).first;
  if (!open_.empty() && swallows(open_.back().phase)) phase = open_.back().phase;
  open_.push_back({record, phase, now()});
}

void SimpleProfiler::close() {
  const double seconds = now() - open_.back().start;
  const Open open = open_.back();
  open_.pop_back();
  Record& r = open.record->second;
  ++r.calls;
  r.total += seconds;
  r.own += seconds - open.inside;
  phases_[open.phase] += seconds - open.inside;
  (open_.empty() ? wall_ : open_.back().inside) += seconds;
  finished(open.record->first, r.phase, open.start, seconds);
}

void SimpleProfiler::stop(const std::string& action) {
  if (!open_.empty() && open_.back().record->first == action) close();
}

std::string SimpleProfiler::summary() const {
  std::vector<std::pair<std::string, Record>> rows(records_.begin(), records_.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
  std::size_t width = 20;
  for (const auto& [name, r] : rows) width = std::max(width, name.size());
  std::string out = fmt::format("Profile of {}: {:.3f} s\n{:<{}} {:>12} {:>9} {:>11} {:>7} {:>7}\n", name_of(stage_),
                                wall_, "action", width, "mean ms", "calls", "total s", "%", "own %");
  for (const auto& [name, r] : rows)
    out += fmt::format("{:<{}} {:12.4f} {:9} {:11.4f} {:7.2f} {:7.2f}\n", name, width, 1e3 * r.mean(), r.calls, r.total,
                       percent(r.total, wall_), percent(r.own, wall_));
  std::vector<std::pair<Phase, double>> phases(phases_.begin(), phases_.end());
  std::stable_sort(phases.begin(), phases.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  out += fmt::format("\n{:<{}} {:>12} {:>7}\n", "phase", width, "seconds", "%");
  for (const auto& [phase, seconds] : phases)
    out += fmt::format("{:<{}} {:12.4f} {:7.2f}\n", levin::name_of(phase), width, seconds, percent(seconds, wall_));
  return out;
}

void SimpleProfiler::teardown(Stage stage) {
  while (!open_.empty()) close();  // actions that an exception left open
  if (options_.filename.empty()) {
    fmt::print(options_.out, "{}", summary());
    std::fflush(options_.out);
    return;
  }
  const auto file = stage_file(std::filesystem::path(root_) / options_.filename, stage);
  std::filesystem::create_directories(file.parent_path());
  io::write_file(file, summary());
}

std::map<Phase, double> SimpleProfiler::phases() const { return phases_; }

}  // namespace levin
