// A program with OpenMP threads of its own that calls Levin between its loops, and inside them.
#include <levin/core/parallel.h>

#include <omp.h>

#include <atomic>
#include <cstdio>
#include <vector>

int main() {
  constexpr int n = 100'000, rounds = 50;
  std::printf("threads: %d\n", levin::num_threads());
  omp_set_num_threads(3);
  levin::set_num_threads(3);
  std::vector<int> values(n);
  std::atomic<int> threads{0};
  for (int round = 0; round < rounds; ++round) {
#pragma omp parallel for
    for (int i = 0; i < n; ++i) ++values[static_cast<std::size_t>(i)];
    levin::parallel_for(0, n, 1000, [&](std::int64_t begin, std::int64_t end) {
      for (auto i = begin; i < end; ++i) ++values[static_cast<std::size_t>(i)];
    });
#pragma omp parallel for
    for (int part = 0; part < 10; ++part) {
      threads = omp_get_num_threads();
      levin::parallel_for(part * (n / 10), (part + 1) * (n / 10), 100, [&](std::int64_t begin, std::int64_t end) {
        for (auto i = begin; i < end; ++i) ++values[static_cast<std::size_t>(i)];
      });
    }
  }
  for (const int value : values) {
    if (value != 3 * rounds) {
      std::printf("FAILED: %d instead of %d\n", value, 3 * rounds);
      return 1;
    }
  }
  std::printf("openmp: ok, %d threads\n", threads.load());
}
