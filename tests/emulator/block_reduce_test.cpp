// Consecutive reductions over a block. Without the barrier at its end, a warp may write its part while another still
// reads that of the previous reduction: the thread sanitizer detects it, values may not.

#include "kernels/cuda/base/warp.h"

#include "emulator/run_kernel.h"

#include <doctest/doctest.h>

#include <atomic>

using namespace levin::emulator;
namespace cuda = levin::kernels::cuda;

TEST_CASE("consecutive reductions over a block do not race") {
  constexpr int kThreads = 128;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const WithSeed with(seed);
    std::atomic<int> wrong = 0;
    const auto kernel = [&] {
      const int own = static_cast<int>(threadIdx.x);
      for (int round = 0; round < 3; ++round) {
        const int sum = cuda::block_reduce(own + round, cuda::Plus(), 0);
        wrong += sum != kThreads * (kThreads - 1) / 2 + kThreads * round;
      }
      wrong += cuda::block_reduce(own, cuda::Maximum(), -1) != kThreads - 1;
    };
    CHECK(run_kernel(2, kThreads, kernel) == "");
    CHECK(wrong == 0);
  }
}
