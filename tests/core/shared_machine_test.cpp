// Two programs on two cores: threads that wait must leave their core to the other program.

#include <doctest/doctest.h>
#include <levin/core/parallel.h>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <new>
#include <vector>

#include "core/pool_threads.h"

using namespace levin;
using namespace pool_threads;

namespace {

using Clock = std::chrono::steady_clock;

/// Arithmetic for some microseconds, which no optimizer removes.
void compute(int steps) {
  volatile float x = 1;
  for (int i = 0; i < steps; ++i) x = x * 0.999f + 0.5f;
}

/// The loops of a training step: large ones, small ones, and work of the calling thread between them.
void training_step() {
  for (const int chunk : {8000, 1000, 4000, 300}) {
    parallel_for(0, 16, 1, [&](int64_t, int64_t) { compute(chunk); });
    compute(2000);
  }
}

struct Shared {
  std::atomic<int> ready;
  std::array<std::atomic<int>, 2> steps;
};

/// Runs two processes with `threads` threads each side by side; returns the steps that each of them completes.
std::array<int, 2> steps_of_two(int threads, std::chrono::milliseconds time) {
  void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Shared& shared = *new (memory) Shared{};
  std::array<pid_t, 2> children{};
  for (std::size_t c = 0; c < 2; ++c) {
    children[c] = fork();
    if (children[c] != 0) continue;
    alarm(60);
    set_num_threads(threads);
    training_step();
    ++shared.ready;
    while (shared.ready < 2) std::this_thread::yield();
    for (const auto end = Clock::now() + time; Clock::now() < end;) {
      training_step();
      ++shared.steps[c];
    }
    _exit(0);
  }
  for (const pid_t child : children) CHECK(wait_for(child) == 0);
  const std::array<int, 2> steps{shared.steps[0], shared.steps[1]};
  munmap(memory, sizeof(Shared));
  return steps;
}

/// Binds this thread, and processes that it starts, to two cores while it lives.
struct TwoCores {
  TwoCores() {
    sched_getaffinity(0, sizeof before, &before);
    cpu_set_t two;
    CPU_ZERO(&two);
    for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++c)
      if (CPU_ISSET(c, &before)) CPU_SET(c, &two);
    sched_setaffinity(0, sizeof two, &two);
  }
  ~TwoCores() { sched_setaffinity(0, sizeof before, &before); }
  cpu_set_t before{};
};

}  // namespace

TEST_CASE("two programs on two cores each reach 0.8 of the speed of one core" * kChildren) {
  if (kOpenMp) return;
  const TwoCores cores;
  double one = 0;
  std::array<double, 2> two{};
  // Threads that spin fail in every attempt; a third program disturbs some.
  for (int attempt = 0; attempt < 5 && std::min(two[0], two[1]) <= 0.8 * one; ++attempt) {
    one = 0;
    two = {};
    for (int round = 0; round < 6; ++round) {  // alternating, as other programs may come and go
      for (const int steps : steps_of_two(1, std::chrono::milliseconds(100))) one += steps / 2.0;
      const auto steps = steps_of_two(2, std::chrono::milliseconds(100));
      for (std::size_t c = 0; c < 2; ++c) two[c] += steps[c];
    }
  }
  INFO("steps of one thread: " << one << ", of two threads: " << two[0] << " and " << two[1]);
  MESSAGE("ratios: " << two[0] / one << " and " << two[1] / one);
  REQUIRE(one > 0);
  CHECK(std::min(two[0], two[1]) >= 0.8 * one);
}
