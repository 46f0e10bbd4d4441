#pragma once
// Runs a task in a process of its own, and again behind a row that ended the process, so that a row whose kernel makes
// an illegal access, or never ends, is one row that failed, and no others are lost.

#include "bench/cuda/worker.h"

namespace levin::bench {

inline constexpr int kDeviceLost = 3;  ///< status of a process whose device was lost behind a row that it has said

struct Supervision {
  /// The program and arguments that run a task and write run_task's messages to standard output, a line each. Other
  /// lines are passed over.
  std::function<std::vector<std::string>(const Task&)> command;
  double row_seconds = 90;  ///< a process that says nothing for this long is killed
};

/// Passes on every message but "begin" and "end" as it comes. What a process was at when it ended is a row that is not
/// ok, with the reason.
void supervise(Task task, const Supervision& supervision, const Say& say);

}  // namespace levin::bench
