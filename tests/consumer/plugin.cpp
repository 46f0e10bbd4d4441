// A shared object that contains Levin, for programs that load and unload it.
#include <levin/core/parallel.h>

#include <atomic>
#include <chrono>
#include <thread>

/// Returns the number of threads that meet in a loop of three chunks.
extern "C" int threads_that_meet() {
  levin::set_num_threads(3);
  std::atomic<int> here{0}, met{0};
  levin::parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
    ++here;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (here < 3 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    if (here == 3) ++met;
  });
  return met;
}
