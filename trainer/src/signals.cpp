#include <levin/trainer/signals.h>

#include <atomic>
#include <csignal>
#include <mutex>

namespace levin {
namespace {

std::atomic<int> received_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // the handler may use nothing else

std::mutex guards_mutex;
int guards = 0;
struct sigaction old_int, old_term;

// SA_RESETHAND has already put the default action back, so the next signal ends the process.
void note(int signal) { received_signal.store(signal); }

void install(int signal, struct sigaction* old) {
  struct sigaction action = {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, old);
}

}  // namespace

SignalGuard::SignalGuard(bool on) : on_(on) {
  if (!on_) return;
  const std::lock_guard lock(guards_mutex);
  if (guards++ > 0) return;
  received_signal.store(0);
  install(SIGINT, &old_int);
  install(SIGTERM, &old_term);
}

SignalGuard::~SignalGuard() {
  if (!on_) return;
  const std::lock_guard lock(guards_mutex);
  if (--guards > 0) return;
  sigaction(SIGINT, &old_int, nullptr);
  sigaction(SIGTERM, &old_term, nullptr);
  received_signal.store(0);
}

int SignalGuard::received() { return received_signal.load(std::memory_order_relaxed); }

}  // namespace levin
