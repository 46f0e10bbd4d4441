#pragma once
// Ctrl-C and SIGTERM end a run after its current step; a second signal ends the process at once. SIGUSR1 under SLURM
// does the same and requeues the job.

#include <levin/core/error.h>

namespace levin {

/// Thrown by Trainer when a signal ended the run, after the checkpoint was saved. Programs exit with 128 + signal: 130
/// for SIGINT, 143 for SIGTERM, 138 for SIGUSR1 (levin::run_main does this).
class Interrupted : public Error {
 public:
  /// `signal` is its number, such as SIGINT.
  Interrupted(int signal, const std::string& text) : Error(text), signal_(signal) {}
  int signal() const { return signal_; }  ///< number of the signal

 private:
  int signal_;
};

/// While any instance is alive, SIGINT and SIGTERM set a flag, and in a SLURM job SIGUSR1 sets another; the last
/// destructor restores the previous handlers.
class SignalGuard {
 public:
  /// With `on` = false the object has no effect.
  explicit SignalGuard(bool on = true);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Returns SIGINT or SIGTERM if it arrived since the first guard, else 0.
  static int received();
  /// True if SIGUSR1 arrived since take_requeue was last called.
  static bool requeue_asked();
  /// Returns requeue_asked() and clears the flag.
  static bool take_requeue();

 private:
  bool on_;
};

}  // namespace levin
