#pragma once
// The part of the benchmarks that one process runs: a family of problems, the training steps, or the machine's peaks. A
// process that loses its device reports that and ends; supervisor.h continues after the row that caused it.

#include "bench/cuda/report.h"

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace levin::bench {

/// A row's place: the index of its problem, and its index among that problem's measured rungs. -1 means that the
/// problem is being created.
struct Place {
  int entry = 0, position = -1;
  auto operator<=>(const Place&) const = default;
};

struct Task {
  std::string family;                ///< "machine", "training", or a family of problems
  std::optional<Level> level;        ///< only rungs of this level
  std::vector<std::string> rungs{};  ///< only rungs of these names; empty: all
  Place from{};                      ///< rows before it are skipped
  bool check = false;                ///< small sizes and no timings
  double seconds = 1e9;              ///< problems that have not started after this long are skipped
  Ceilings ceilings{};
};
Json to_json(const Task& task);
Task task_of(const Json& json);

Json to_json(const Ceilings& ceilings);
Ceilings ceilings_of(const Json& json);

/// Reports progress as it happens, one object each:
///   kind: "begin", "row", "training", "machine" or "left_out"
///   entry, position: of begin and row
///   row: the report's row; for "begin", its first members
using Say = std::function<void(const Json& message)>;

/// Returns false if the device was lost, after which the process can compute no further row.
bool run_task(const Task& task, const std::vector<Entry>& entries, const Say& say);

}  // namespace levin::bench
