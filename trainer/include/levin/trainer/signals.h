#pragma once
// Ctrl-C and SIGTERM end a run after its current step; a second one ends the process at once. SIGUSR1 under SLURM asks
// for the same, and to be put in the queue again.

#include <levin/core/error.h>

namespace levin {

/// Thrown by Trainer when a signal ended the run, after the checkpoint was saved. Programs exit with 128 + signal:
/// 130 for SIGINT, 143 for SIGTERM, 138 for SIGUSR1 (levin::run_main does).
class Interrupted : public Error {
 public:
  Interrupted(int signal, const std::string& text) : Error(text), signal_(signal) {}
  int signal() const { return signal_; }

 private:
  int signal_;
};

/// While one is alive, SIGINT and SIGTERM set a flag, in a SLURM job SIGUSR1 another; the former handlers come back
/// with the last one's end.
class SignalGuard {
 public:
  explicit SignalGuard(bool on = true);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// SIGINT or SIGTERM, whichever arrived since the first guard; 0 for none.
  static int received();
  /// Whether SIGUSR1 arrived since it was last taken.
  static bool requeue_asked();
  static bool take_requeue();

 private:
  bool on_;
};

}  // namespace levin
