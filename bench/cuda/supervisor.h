#pragma once
// Runs a task in a child process and restarts it after the row that ended the process. A kernel that makes an illegal
// access or never ends thus fails one row and loses no others.

#include "bench/cuda/worker.h"

namespace levin::bench {

inline constexpr int kDeviceLost = 3;  ///< exit status of a process that lost its device after it reported a row

struct Supervision {
  /// Returns the program and arguments that run a task and write run_task's messages to standard output, one per line.
  /// Other lines are ignored.
  std::function<std::vector<std::string>(const Task&)> command;
  double row_seconds = 90;  ///< a process that reports nothing for this long is killed
};

/// Forwards every message except "begin" and "end" as it arrives. The row at which a process ended is reported as not
/// ok, with the reason.
void supervise(Task task, const Supervision& supervision, const Say& say);

}  // namespace levin::bench
