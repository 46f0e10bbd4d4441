#include "bench/cuda/worker.h"

#include "bench/cuda/check.h"
#include "bench/cuda/training.h"

#include <levin/autograd/modes.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <chrono>

namespace levin::bench {

namespace {

/// Returns true after an illegal access or a similar error, after which the process can no longer use the device.
bool device_is_lost() {
  try {
    cuda::synchronize();
    return false;
  } catch (const Error&) {
    return true;
  }
}

Json head_without_rung(const std::string& family) {
  return {{"name", family + "/none"}, {"family", family}, {"rung", "none"}, {"shape", ""}, {"dtype", ""}};
}

/// Returns the rungs to measure, the shipping one first.
std::vector<const Rung*> selected(const Problem& p, const Task& task) {
  std::vector<const Rung*> rungs;
  for (const Rung& rung : p.rungs) {
    if (task.level && rung.level != *task.level) continue;
    if (!task.rungs.empty() && std::ranges::find(task.rungs, rung.name) == task.rungs.end()) continue;
    rungs.push_back(&rung);
  }
  std::ranges::reverse(rungs);
  std::ranges::stable_sort(rungs, {}, &Rung::level);
  return rungs;
}

class ProblemRows {
 public:
  ProblemRows(const Task& task, const Say& say)
      : task_(task),
        say_(say),
        meter_(task.check ? MeterOptions{.warm_up_seconds = 0, .quads = 2, .flush_bytes = 4096} : MeterOptions{}) {}

  /// Reports the rows of a problem. Returns false if the device was lost.
  bool run(const Entry& entry, int number) {
    begin({number, -1}, head_without_rung(entry.family));
    try {
      if (!task_.check) cuda::empty_cache();
      const Problem p = with_kept_rows(entry.make());
      return rungs_of(p, number);
    } catch (const Error& e) {
      return end({number, -1}, failed_row(head_without_rung(entry.family), e.what()));
    }
  }

 private:
  bool rungs_of(const Problem& p, int number) {
    Place place{number, 0};
    for (const Rung* rung : selected(p, task_)) {
      if (place >= task_.from) {
        begin(place, head_of(p, *rung));
        const Json row = task_.check ? check_rung(p, *rung, meter_) : measure_rung(p, *rung, meter_, task_.ceilings);
        if (!end(place, row)) return false;
      }
      ++place.position;
    }
    return true;
  }

  void begin(const Place& place, const Json& head) {
    say_({{"kind", "begin"}, {"entry", place.entry}, {"position", place.position}, {"row", head}});
  }
  bool end(const Place& place, const Json& row) {
    say_({{"kind", "row"}, {"entry", place.entry}, {"position", place.position}, {"row", row}});
    return !device_is_lost();  // a peer may have lost it although the row is correct
  }

  const Task& task_;
  const Say& say_;
  Meter meter_;
};

bool run_training(const Task& task, const Say& say) {
  int number = 0;
  for (const char* net : {"cnn", "gpt_blocks"}) {
    const int entry = number++;
    if (entry < task.from.entry) continue;
    if (!task.rungs.empty() && std::ranges::find(task.rungs, net) == task.rungs.end()) continue;
    const Json head = head_without_rung("training");
    Json begins = head;
    begins["name"] = std::string("training/") + net;
    say({{"kind", "begin"}, {"entry", entry}, {"position", -1}, {"row", begins}});
    try {
      for (const Json& row : training_rows(net, task.check ? Scale::check : Scale::full, !task.check))
        say({{"kind", "training"}, {"row", row}});
    } catch (const Error& e) {
      say({{"kind", "row"}, {"entry", entry}, {"position", -1}, {"row", failed_row(begins, e.what())}});
      if (device_is_lost()) return false;
      continue;
    }
    say({{"kind", "end"}, {"entry", entry}, {"position", -1}});
  }
  return true;
}

}  // namespace

Json to_json(const Ceilings& c) {
  Json flops = Json::object();
  for (const auto& [unit, rate] : c.flops) flops[unit] = rate;
  return {{"copy", c.copy}, {"noise", c.noise}, {"flops", flops}, {"missing", c.missing}};
}

Ceilings ceilings_of(const Json& json) {
  Ceilings c{.copy = json["copy"], .noise = json["noise"], .flops = {}, .missing = json["missing"]};
  for (const auto& [unit, rate] : json["flops"].items()) c.flops.emplace_back(unit, rate.get<double>());
  return c;
}

Json to_json(const Task& t) {
  return {{"family", t.family},
          {"level", t.level ? Json(static_cast<int>(*t.level)) : Json()},
          {"rungs", t.rungs},
          {"from", {t.from.entry, t.from.position}},
          {"check", t.check},
          {"seconds", t.seconds},
          {"ceilings", to_json(t.ceilings)}};
}

Task task_of(const Json& json) {
  Task t{.family = json["family"], .level = {}};
  if (!json["level"].is_null()) t.level = static_cast<Level>(json["level"].get<int>());
  t.rungs = json["rungs"].get<std::vector<std::string>>();
  t.from = {json["from"][0], json["from"][1]};
  t.check = json["check"];
  t.seconds = json["seconds"];
  t.ceilings = ceilings_of(json["ceilings"]);
  return t;
}

bool run_task(const Task& task, const std::vector<Entry>& entries, const Say& say) {
  const auto start = std::chrono::steady_clock::now();
  if (task.family == "training") return run_training(task, say);
  const no_grad guard;
  if (task.family == "machine") {
    Meter meter{MeterOptions{}};
    const Ceilings ceilings = measure_ceilings(meter, Scale::full);
    say({{"kind", "machine"}, {"row", describe_machine(ceilings)}, {"ceilings", to_json(ceilings)}});
    return true;
  }
  ProblemRows rows(task, say);
  for (int number = task.from.entry; number < static_cast<int>(entries.size()); ++number) {
    const Entry& entry = entries[static_cast<std::size_t>(number)];
    if (entry.family != task.family) continue;
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > task.seconds) {
      say({{"kind", "left_out"}, {"row", {{"name", entry.family}}}});
      return true;
    }
    if (!rows.run(entry, number)) return false;
  }
  return true;
}

}  // namespace levin::bench
