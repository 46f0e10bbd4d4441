#include <levin/trainer/signals.h>

#include <atomic>
#include <csignal>
#include <mutex>

#include "src/launch/slurm.h"

namespace levin {
namespace {

std::atomic<int> received_signal{0};
std::atomic<bool> requeue{false};
static_assert(std::atomic<int>::is_always_lock_free);  // handlers may only use lock-free atomics
static_assert(std::atomic<bool>::is_always_lock_free);

std::mutex guards_mutex;
int guards = 0;
bool in_job = false;
struct sigaction old_int, old_term, old_usr1;

// SA_RESETHAND has already restored the default action, so the next signal ends the process.
void note(int signal) { received_signal.store(signal); }
void note_requeue(int) { requeue.store(true); }

void install(int signal, void (*handler)(int), int flags, struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, old);
}

}  // namespace

SignalGuard::SignalGuard(bool on) : on_(on) {
  if (!on_) return;
  const std::lock_guard lock(guards_mutex);
  if (guards++ > 0) return;
  received_signal.store(0);
  requeue.store(false);
  constexpr int kOnce = static_cast<int>(SA_RESTART | SA_RESETHAND);
  install(SIGINT, note, kOnce, &old_int);
  install(SIGTERM, note, kOnce, &old_term);
  in_job = slurm::job_id().has_value();
  if (in_job) install(SIGUSR1, note_requeue, SA_RESTART, &old_usr1);
}

SignalGuard::~SignalGuard() {
  if (!on_) return;
  const std::lock_guard lock(guards_mutex);
  if (--guards > 0) return;
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
  if (in_job) sigaction(SIGUSR1, &old_usr1, nullptr);
  received_signal.store(0);
  requeue.store(false);
}

int SignalGuard::received() { return received_signal.load(std::memory_order_relaxed); }
bool SignalGuard::requeue_asked() { return requeue.load(std::memory_order_relaxed); }
bool SignalGuard::take_requeue() { return requeue.exchange(false); }

}  // namespace levin
