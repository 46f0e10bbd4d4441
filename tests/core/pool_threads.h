#pragma once
// Loops of parallel_for whose chunks wait for each other, so that tests know which threads run them, and children.

#include <doctest/doctest.h>
#include <levin/core/config.h>
#include <levin/core/parallel.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace pool_threads {

using namespace levin;

inline constexpr bool kPool = std::string_view(LEVIN_THREADS) == "pool";
inline constexpr bool kOpenMp = std::string_view(LEVIN_THREADS) == "openmp";
inline constexpr bool kSerial = std::string_view(LEVIN_THREADS) == "serial";

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// Cases whose forked children start threads, which qemu and g++'s thread sanitizer do not survive; tools/verbs/test.sh
/// leaves them out there.
const doctest::test_suite kChildren("children");

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

/// Sets the number of threads while it lives.
struct Threads {
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

/// Waits until condition(), at most 20 s; returns whether it holds.
template <class Condition>
bool within_20_s(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A meeting of n threads.
class Meeting {
 public:
  explicit Meeting(int n) : wanted_(n) {}
  /// Waits until all have joined; returns whether they have within 20 s.
  bool join() {
    ++here_;
    return within_20_s([&] { return here_ >= wanted_; });
  }

 private:
  int wanted_;
  std::atomic<int> here_{0};
};

/// Returns n if n threads compute a loop of n chunks at once, and fewer otherwise.
inline int threads_that_meet(int n) {
  const Threads scope(n);
  Meeting meeting(n);
  std::atomic<int> met{0};
  std::atomic<bool> failed{false};
  parallel_for(0, n, 1, [&](std::int64_t, std::int64_t) {
    if (!failed && meeting.join()) {
      ++met;
    } else {
      failed = true;
    }
  });
  return met;
}

/// Calls f on the worker of a loop of two threads.
inline void on_worker(const std::function<void()>& f) {
  const std::thread::id caller = std::this_thread::get_id();
  Meeting meeting(2);
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    meeting.join();
    if (std::this_thread::get_id() != caller) f();
  });
}

/// True if a thread of this process sleeps rather than runs or waits for a core.
inline bool sleeps(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');  // "TID (NAME) S ..."
  return name_end != std::string::npos && stat.compare(name_end + 1, 2, " S") == 0;
}

inline pthread_t worker_of_two() {
  pthread_t worker{};
  on_worker([&] { worker = pthread_self(); });
  return worker;
}

/// The exit status of a child; 128 and more after a signal.
inline int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Returns f() as the exit status of a forked child, which a signal ends after 60 s.
inline int child_status(const std::function<int()>& f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return wait_for(child);
  alarm(60);
  _exit(f());
}

/// Holds a worker in a handler of SIGPROF, at most 20 s, while the object lives.
class HeldWorker {
 public:
  explicit HeldWorker(pthread_t worker) {
    state() = 0;
    struct sigaction action {};
    action.sa_handler = [](int) {
      state() = 1;
      for (int i = 0; i < 20'000 && state() == 1; ++i) usleep(1000);
      state() = 2;
    };
    sigaction(SIGPROF, &action, &before_);
    pthread_kill(worker, SIGPROF);
    for (int i = 0; i < 20'000 && state() == 0; ++i) usleep(1000);
  }
  ~HeldWorker() {
    int held = 1;
    if (state().compare_exchange_strong(held, 3)) {
      while (state() != 2) usleep(1000);
    }
    sigaction(SIGPROF, &before_, nullptr);
  }
  HeldWorker(const HeldWorker&) = delete;
  HeldWorker& operator=(const HeldWorker&) = delete;

  bool began() const { return state() == 1; }
  bool released() const { return state() != 1; }

 private:
  static std::atomic<int>& state() {
    static std::atomic<int> value{0};  // 1: held, 3: may go on, 2: gone on
    return value;
  }
  struct sigaction before_ {};
};

}  // namespace pool_threads
