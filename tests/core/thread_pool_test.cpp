// The workers of parallel_for under the conditions of real programs: forks, exits, signals, several calling threads,
// workers that do not come, and idle time. What only the pool promises is not checked with LEVIN_THREADS=openmp.

#include <doctest/doctest.h>
#include <levin/core/config.h>
#include <levin/core/error.h>
#include <levin/core/parallel.h>
#include <levin/core/side_by_side.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <thread>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "core/pool_threads.h"

using namespace levin;
using namespace pool_threads;

TEST_CASE("a loop of n chunks runs on n threads at once, the caller among them") {
  for (const int n : {2, 3, 7, 70}) {
    if (kPool || n < 10) CHECK(threads_that_meet(n) == n);
  }
  if (!kSerial) CHECK(threads_that_meet(2) == 2);
}

TEST_CASE("an exception on a worker reaches the caller with its type") {
  if (kSerial) return;
  const Threads scope(2);
  const std::thread::id caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 20; ++repeat) {
    Meeting meeting(2);
    const auto body = [&](int64_t, int64_t) {
      meeting.join();
      if (std::this_thread::get_id() != caller) throw IndexError("[test] a worker");
    };
    CHECK_THROWS_WITH_AS(parallel_for(0, 2, 1, body), "[test] a worker", IndexError);
  }
  CHECK(threads_that_meet(2) == 2);
}

TEST_CASE("a child of a fork has workers of its own, and so has its child" * kChildren) {
  if (kOpenMp) return;
  threads_that_meet(3);  // the parent has workers
  CHECK(child_status([] {
          if (!kSerial && threads_that_meet(3) != 3) return 1;
          return child_status([] { return kSerial || threads_that_meet(2) == 2 ? 0 : 2; });
        }) == 0);
  CHECK((kSerial || threads_that_meet(3) == 3));
}

TEST_CASE("a thread may fork while others compute" * kChildren) {
  if (kOpenMp) return;
  const Threads scope(2);
  std::atomic<bool> stop{false};
  std::atomic<int> loops[2]{};
  std::vector<std::thread> others;
  for (int t = 0; t < 2; ++t) {
    others.emplace_back([&, t] {
      for (; !stop; ++loops[t]) parallel_for(0, 16, 1, [](int64_t, int64_t) {});
    });
  }
  // Threads that start allocate, and a child that is forked meanwhile inherits the sanitizer's locked allocator.
  if (kAddressSanitizer) CHECK(within_20_s([&] { return loops[0] > 1000 && loops[1] > 1000; }));
  int failed = 0;
  for (int i = 0; i < 20; ++i) failed += child_status([] { return kSerial || threads_that_meet(2) == 2 ? 0 : 1; }) != 0;
  stop = true;
  for (std::thread& t : others) t.join();
  CHECK(failed == 0);
}

TEST_CASE("a child that was forked inside a loop is told that its other threads are missing" * kChildren) {
  if (!kPool) return;
  const Threads scope(2);
  const pid_t parent = getpid();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> status{-1};
  std::atomic<bool> forked{false};
  Meeting meeting(2);
  try {
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      meeting.join();
      if (std::this_thread::get_id() != caller) {
        while (!forked) std::this_thread::yield();
        return;
      }
      const pid_t child = fork();
      if (child == 0) {
        alarm(30);
        return;
      }
      forked = true;
      status = wait_for(child);
    });
    if (getpid() != parent) _exit(1);
  } catch (const StateError& error) {
    const std::string_view text = error.what();
    if (getpid() != parent) {
      const bool alive = threads_that_meet(2) == 2;  // with a new worker
      _exit(alive && text == "[parallel_for] this process was forked inside a loop, whose other threads are missing "
                             "here. Fork outside of parallel_for." ? 0 : 2);
    }
    FAIL("the parent was told that it is a child");
  }
  CHECK(status == 0);
}

TEST_CASE("a process may end in any state of its threads" * kChildren) {
  if (kOpenMp) return;
  const auto ends = [](const std::function<void()>& how) {
    return child_status([&] {
      how();
      return 1;
    });
  };
  CHECK(ends([] {
          threads_that_meet(3);
          std::exit(0);
        }) == 0);
  if (kSerial) return;
  const Threads scope(2);
  const std::thread::id caller = std::this_thread::get_id();
  CHECK(ends([&] {  // on a worker, while the caller waits
          Meeting meeting(2);
          parallel_for(0, 2, 1, [&](int64_t, int64_t) {
            meeting.join();
            if (std::this_thread::get_id() != caller) std::exit(0);
          });
        }) == 0);
  CHECK(ends([&] {  // on the caller, while the worker computes for ever
          Meeting meeting(2);
          parallel_for(0, 2, 1, [&](int64_t, int64_t) {
            meeting.join();
            if (std::this_thread::get_id() == caller) std::exit(0);
            for (;;) pause();
          });
        }) == 0);
}

TEST_CASE("a loop computes without the workers that other callers hold, and gets them when they are free") {
  if (!kPool) return;
  const Threads scope(2);  // which is one worker for all callers
  std::atomic<bool> held{false}, release{false};
  std::thread other([&] {
    Meeting meeting(2);
    parallel_for(0, 2, 1, [&](int64_t, int64_t) {
      meeting.join();
      held = true;
      while (!release) std::this_thread::yield();
    });
  });
  while (!held) std::this_thread::yield();
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> chunks{0}, elsewhere{0};
  parallel_for(0, 20, 1, [&](int64_t, int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // in which another worker could come
    ++chunks;
    if (std::this_thread::get_id() != caller) ++elsewhere;
  });
  CHECK(chunks == 20);
  CHECK(elsewhere == 0);

  std::atomic<bool> came{false};
  bool waited = false;
  parallel_for(0, 64, 1, [&](int64_t b, int64_t) {
    if (std::this_thread::get_id() != caller) {
      came = true;
    } else if (b == 0) {
      release = true;
      other.join();
    } else if (!waited) {
      waited = true;
      within_20_s([&] { return came.load(); });
    }
  });
  CHECK(came);
}

TEST_CASE("callers with a limit have workers of their own as long as the number of threads allows it" * kChildren) {
  if (!kPool) return;
  CHECK(child_status([] {  // which has no workers yet
          const Threads scope(3);
          Meeting meeting(4);
          std::atomic<int> met{0};
          std::vector<std::thread> callers;
          for (int t = 0; t < 2; ++t) {
            callers.emplace_back([&] {
              limit_thread(2);
              parallel_for(0, 2, 1, [&](int64_t, int64_t) { met += meeting.join(); });
            });
          }
          for (std::thread& t : callers) t.join();
          return met == 4 ? 0 : 1;
        }) == 0);
}

TEST_CASE("many callers with many loops: no chunk is lost or computed twice") {
  const Threads scope(3);
  constexpr int callers = 6, loops = 400, chunks = 37;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::atomic<int>> count(chunks);
      for (int i = 1; i <= loops; ++i) {
        parallel_for(0, chunks, 1, [&](int64_t b, int64_t) { ++count[static_cast<std::size_t>(b)]; });
        for (const auto& c : count) wrong += c != i;
        if (i % 50 == t) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // so that workers sleep
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("a worker that does not come is not waited for") {
  if (!kPool) return;
  const Threads scope(2);
  const HeldWorker held(worker_of_two());
  REQUIRE(held.began());
  const std::thread::id caller = std::this_thread::get_id();
  for (int repeat = 0; repeat < 3; ++repeat) {
    int chunks = 0;
    parallel_for(0, 100, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() == caller) ++chunks;
    });
    CHECK(chunks == 100);
    CHECK_FALSE(held.released());
  }
}

TEST_CASE("idle workers sleep") {
  if (kSerial) return;
  const Threads scope(2);
  pid_t worker = 0;
  on_worker([&] { worker = gettid(); });
  CHECK(within_20_s([&] { return sleeps(worker); }));
}

TEST_CASE("a caller that waits for a long chunk sleeps") {
  if (!kPool) return;
  const Threads scope(2);
  const pid_t caller = gettid();
  bool slept = false;
  on_worker([&] { slept = within_20_s([&] { return sleeps(caller); }); });
  CHECK(slept);
}

TEST_CASE("signals of the process are handled by threads of the program, those of faults by workers too") {
  if (!kPool) return;
  const Threads scope(2);
  sigset_t mask{};
  on_worker([&] { pthread_sigmask(SIG_SETMASK, nullptr, &mask); });
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGALRM}) CHECK(sigismember(&mask, signal) == 1);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF}) CHECK(sigismember(&mask, signal) == 0);
  sigset_t own{};
  pthread_sigmask(SIG_SETMASK, nullptr, &own);
  CHECK(sigismember(&own, SIGINT) == 0);
}

TEST_CASE("workers use the cores of the process, also if a bound thread starts them" * kChildren) {
  if (!kPool) return;
  cpu_set_t process{};
  REQUIRE(sched_getaffinity(getpid(), sizeof process, &process) == 0);
  const int status = child_status([&] {  // whose first loop starts workers
    int result = 1;
    std::thread([&] {
      cpu_set_t one, workers;
      CPU_ZERO(&one);
      for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++c)
        if (CPU_ISSET(c, &process)) CPU_SET(c, &one);
      sched_setaffinity(0, sizeof one, &one);
      CPU_ZERO(&workers);
      const Threads scope(2);
      on_worker([&] { sched_getaffinity(0, sizeof workers, &workers); });
      result = CPU_EQUAL(&workers, &process) ? 0 : 2;
    }).join();
    return result;
  });
  CHECK(status == 0);
}

#if defined(__SSE2__)
TEST_CASE("workers treat denormal numbers and round as the caller does") {
  if (!kPool) return;
  const Threads scope(2);
  const unsigned before = _mm_getcsr();
  const auto control_of_worker = [] {
    unsigned control = 0;
    on_worker([&] { control = _mm_getcsr(); });
    return control & ~0x3fu;  // without the exceptions that have occurred
  };
  _mm_setcsr(before | _MM_FLUSH_ZERO_ON | _MM_ROUND_UP);
  CHECK(control_of_worker() == ((before | _MM_FLUSH_ZERO_ON | _MM_ROUND_UP) & ~0x3fu));
  _mm_setcsr(before);
  CHECK(control_of_worker() == (before & ~0x3fu));
}
#endif

TEST_CASE("if the system refuses a thread, the loop is computed without it" * kChildren) {
  if (!kPool || kSanitized) return;  // sanitizers need memory of their own
  CHECK(child_status([] {  // which has no workers yet
          const rlimit none{1, RLIM_INFINITY};
          if (setrlimit(RLIMIT_AS, &none) != 0) return 1;
          const Threads scope(4);
          std::atomic<int> chunks{0};
          for (int i = 0; i < 2; ++i) parallel_for(0, 10, 1, [&](int64_t, int64_t) { ++chunks; });
          return chunks == 20 ? 0 : 2;
        }) == 0);
}
