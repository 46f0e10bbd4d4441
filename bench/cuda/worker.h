#pragma once
// The part of the benchmarks that one process computes: a family of problems, the training steps, or the machine's
// rates. A process whose device was lost says so and ends; supervisor.h goes on behind the row that did it.

#include "bench/cuda/report.h"

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace levin::bench {

/// A row's place: its problem in the list of all, and its place among the rungs that are measured of it. -1: the
/// problem is being made.
struct Place {
  int entry = 0, position = -1;
  auto operator<=>(const Place&) const = default;
};

struct Task {
  std::string family;                ///< "machine", "training", or a family of problems
  std::optional<Level> level;        ///< rungs of this level alone
  std::vector<std::string> rungs{};  ///< rungs of these names alone; empty: all
  Place from{};                      ///< rows before it are left out
  bool check = false;                ///< small sizes and no figures
  double seconds = 1e9;              ///< problems that are not begun after this long are left out
  Ceilings ceilings{};
};
Json to_json(const Task& task);
Task task_of(const Json& json);

Json to_json(const Ceilings& ceilings);
Ceilings ceilings_of(const Json& json);

/// Says what happens as it happens, an object each:
///   kind: "begin", "row", "training", "machine" or "left_out"
///   entry, position: of begin and row
///   row: what belongs into the report; of begin, how the row begins
using Say = std::function<void(const Json& message)>;

/// Returns false when the device was lost: the process can compute no further row.
bool run_task(const Task& task, const std::vector<Entry>& entries, const Say& say);

}  // namespace levin::bench
