// Blocks on fibers: indices, barriers, warp functions, shared memory, and the emulator's reports.

#include "emulator/run_kernel.h"

#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

using namespace levin::emulator;

namespace {

/// Runs several seeds, because kernels must not depend on the order. Returns the first report.
std::string run_seeds(dim3 grid, dim3 block, std::function<void()> body, std::size_t shared = 0, dim3 cluster = {}) {
  for (const std::uint64_t seed : {0, 1, 2, 3, 4}) {
    config().seed = seed;
    const std::string text = run_kernel(grid, block, body, shared, cluster);
    config().seed = 0;
    if (!text.empty()) return text;
  }
  return {};
}

/// Returns a shared array of the block, a different one for each calling place.
template <class T>
T* shared(const char* key, std::size_t n) {
  return static_cast<T*>(shared_array(key, n * sizeof(T), 16, Site::current()));
}

}  // namespace

TEST_CASE("every thread of every block runs once, with its own indices") {
  std::vector<int> seen(3 * 2 * 2 * 40);
  CHECK(run_seeds({3, 2, 2}, {5, 4, 2}, [&] {
          CHECK(blockDim.x == 5);
          CHECK(gridDim.z == 2);
          const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
          const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
          CHECK(thread == static_cast<unsigned>(thread_number()));
          atomicAdd(&seen[block * 40 + thread], 1);
        }) == "");
  CHECK(seen == std::vector<int>(seen.size(), 5));
}

TEST_CASE("a barrier orders the threads of a block") {
  std::vector<int> out(4 * 96);
  static constexpr char key = 0;
  CHECK(run_seeds(4, 96, [&] {
          int* tile = shared<int>(&key, 96);
          const unsigned t = threadIdx.x;
          tile[t] = static_cast<int>(t + blockIdx.x);
          __syncthreads();
          out[blockIdx.x * 96 + t] = tile[95 - t];
        }) == "");
  for (int i = 0; i < 4 * 96; ++i) CHECK(out[static_cast<std::size_t>(i)] == 95 - i % 96 + i / 96);
}

#if !defined(__SANITIZE_THREAD__)  // it would report the race, see sanitizer_test.cpp
TEST_CASE("without its barrier the same kernel is wrong for some order of threads") {
  bool wrong = false;
  static constexpr char key = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    config().seed = seed;
    CHECK(run_kernel(1, 64, [&] {
            int* tile = shared<int>(&key, 64);
            tile[threadIdx.x] = static_cast<int>(threadIdx.x);
            wrong = wrong || as_it_is(tile[63 - threadIdx.x]) != static_cast<int>(63 - threadIdx.x);
          }) == "");
  }
  config().seed = 0;
  CHECK(wrong);
}
#endif

TEST_CASE("counting barriers") {
  CHECK(run_seeds(1, 70, [] {
          const int t = static_cast<int>(threadIdx.x);
          CHECK(__syncthreads_count(t % 2) == 35);
          CHECK(__syncthreads_and(t >= 0) == 1);
          CHECK(__syncthreads_and(t > 0) == 0);
          CHECK(__syncthreads_or(t == 69) == 1);
          CHECK(__syncthreads_or(0) == 0);
        }) == "");
}

TEST_CASE("named barriers synchronise part of a block") {
  static constexpr char key = 0;
  CHECK(run_seeds(1, 128, [] {
          int* flag = shared<int>(&key, 128);
          const int t = thread_number(), group = t / 64;
          flag[t] = t;
          block_barrier("bar.sync", 1 + group, 64, Site::current());
          CHECK(flag[group * 64 + (t + 17) % 64] == group * 64 + (t + 17) % 64);
        }) == "");
}

TEST_CASE("shuffles follow CUDA's table") {
  CHECK(run_seeds(1, 64, [] {
          const int lane = thread_number() % 32;
          CHECK(__shfl_sync(0xffffffffu, lane, 5) == 5);
          CHECK(__shfl_sync(0xffffffffu, lane, 5, 8) == lane / 8 * 8 + 5);
          CHECK(__shfl_up_sync(0xffffffffu, lane, 3u) == (lane < 3 ? lane : lane - 3));
          CHECK(__shfl_down_sync(0xffffffffu, lane, 3u) == (lane > 28 ? lane : lane + 3));
          CHECK(__shfl_xor_sync(0xffffffffu, lane, 9) == (lane ^ 9));
          CHECK(__shfl_down_sync(0xffffffffu, lane, 1u, 16) == (lane % 16 == 15 ? lane : lane + 1));
          CHECK(__shfl_xor_sync(0xffffffffu, 0.5 * lane, 31) == 0.5 * (31 - lane));
        }) == "");
}

TEST_CASE("votes, matches and reductions") {
  CHECK(run_seeds(1, 32, [] {
          const int lane = thread_number();
          CHECK(__ballot_sync(0xffffffffu, lane % 3 == 0) == 0x49249249u);
          CHECK(__any_sync(0xffffffffu, lane == 31) == 1);
          CHECK(__all_sync(0xffffffffu, lane == 31) == 0);
          CHECK(__match_any_sync(0xffffffffu, lane / 16) == (lane < 16 ? 0xffffu : 0xffff0000u));
          int all = 7;
          CHECK(__match_all_sync(0xffffffffu, 42, &all) == 0xffffffffu);
          CHECK(all == 1);
          CHECK(__reduce_add_sync(0xffffffffu, lane) == 496);
          CHECK(__reduce_max_sync(0xffffffffu, -lane) == 0);
          CHECK(__reduce_min_sync(0xffffffffu, -lane) == -31);
          CHECK(__reduce_xor_sync(0xffffffffu, 1u << lane) == 0xffffffffu);
        }) == "");
}

TEST_CASE("two halves of a warp can diverge") {
  CHECK(run_seeds(1, 32, [] {
          const int lane = thread_number();
          if (lane < 16) {
            CHECK(__reduce_add_sync(0xffffu, lane) == 120);
          } else {
            CHECK(__ballot_sync(0xffff0000u, 1) == 0xffff0000u);
          }
          __syncwarp();
        }) == "");
}

TEST_CASE("a partial warp has only its lanes") {
  CHECK(run_seeds(1, 40, [] {
          const int lane = thread_number() % 32, lanes = thread_number() < 32 ? 32 : 8;
          CHECK(__reduce_add_sync(0xffffffffu, 1) == lanes);
          CHECK(__shfl_sync(0xffffffffu, lane, 3) == 3);
        }) == "");
}

TEST_CASE("atomics of all widths, over blocks") {
  int i = 0;
  unsigned u = 0, wheel = 0;
  unsigned long long l = 0;
  float f = 0;
  double d = 0;
  int low = 1000, high = -1000;
  CHECK(run_seeds(8, 64, [&] {
          atomicAdd(&i, 1);
          atomicSub(&u, 1u);
          atomicAdd(&l, 1ull << 33);
          atomicAdd(&f, 1.f);
          atomicAdd(&d, 0.5);
          atomicMin(&low, static_cast<int>(threadIdx.x));
          atomicMax(&high, static_cast<int>(threadIdx.x));
          atomicInc(&wheel, 9u);
        }) == "");
  CHECK(i == 2560);
  CHECK(u == 0u - 2560);
  CHECK(l == 2560ull << 33);
  CHECK(f == 2560.f);
  CHECK(d == 1280.0);
  CHECK(low == 0);
  CHECK(high == 63);
  CHECK(wheel == 0);
}

TEST_CASE("shared memory begins as NaN in every block and dynamic memory is aligned") {
  static constexpr char key = 0;
  CHECK(run_seeds(
            6, 32,
            [&] {
              float* tile = shared<float>(&key, 32);
              auto* dynamic = static_cast<float*>(dynamic_shared_memory(Site::current()));
              CHECK(reinterpret_cast<std::uintptr_t>(dynamic) % 1024 == 0);
              CHECK(dynamic_shared_bytes() == 128);
              CHECK(std::isnan(as_it_is(tile[threadIdx.x])));
              CHECK(std::isnan(as_it_is(dynamic[threadIdx.x])));
              tile[threadIdx.x] = dynamic[threadIdx.x] = 1.f;
            },
            128) == "");
}

TEST_CASE("the blocks of a cluster reach each other's shared memory") {
  std::vector<int> out(8 * 32);
  static constexpr char key = 0;
  CHECK(run_seeds(
            8, 32,
            [&] {
              int* mine = shared<int>(&key, 32);
              mine[threadIdx.x] = static_cast<int>(blockIdx.x * 100 + threadIdx.x);
              cluster_barrier("cluster.sync", Site::current());
              CHECK(cluster_size() == 4);
              const int* other = static_cast<const int*>(map_shared(mine, (cluster_rank() + 1) % 4, Site::current()));
              out[blockIdx.x * 32 + threadIdx.x] = other[threadIdx.x];
              cluster_barrier("cluster.sync", Site::current());
            },
            0, 4) == "");
  for (int b = 0; b < 8; ++b) CHECK(out[static_cast<std::size_t>(b * 32 + 7)] == (b / 4 * 4 + (b + 1) % 4) * 100 + 7);
}

TEST_CASE("a thread that spins on another's write lets it run") {
  int flag = 0;
  CHECK(run_seeds(1, 2, [&] {
          if (threadIdx.x == 0) {
            while (__atomic_load_n(&flag, __ATOMIC_RELAXED) % 2 == 0) yield_thread();
          }
          atomicAdd(&flag, 1);
        }) == "");
  CHECK(flag == 10);
}

TEST_CASE("reports name kernel, block, thread and place") {
  SUBCASE("a barrier that part of the block never reaches") {
    const std::string text = run_kernel(2, 64, [] {
      if (threadIdx.x >= 16) __syncthreads();
    });
    CHECK(holds(text, "kernel test, block (0, 0, 0), thread (16, 0, 0)"));
    CHECK(holds(text, "engine_test.cpp"));
    CHECK(holds(text, "divergent barrier: 16 of the 64 threads of the block ended without coming to this"));
  }
  SUBCASE("two barriers at once") {
    const std::string text = run_kernel(1, 64, [] {
      if (threadIdx.x < 32) {
        __syncthreads();
      } else {
        __syncthreads();
      }
    });
    CHECK(holds(text, "divergent barrier: this thread is in __syncthreads here, thread 0 in __syncthreads at"));
  }
  SUBCASE("deadlock, with the place of each thread") {
    const std::string text = run_kernel(1, 64, [] {
      if (threadIdx.x < 32) {
        __shfl_sync(0xffffffffu, 1, 0);
        __syncthreads();
      } else {
        block_barrier("bar.sync", 3, 64, Site::current());
      }
    });
    CHECK(holds(text, "deadlock: no thread can go on"));
    CHECK(holds(text, "thread (0, 0, 0) and the next 31 wait in __syncthreads at"));
    CHECK(holds(text, "thread (32, 0, 0) and the next 31 wait in bar.sync at"));
  }
  SUBCASE("lanes that ended, other masks, other functions") {
    CHECK(holds(run_kernel(1, 32,
                           [] {
                             if (threadIdx.x > 0) __syncwarp();
                           }),
                "ended"));
    CHECK(
        holds(run_kernel(1, 32, [] { __shfl_sync(1u << ((threadIdx.x + 1) % 32), 1, 0); }), "is not in its own mask"));
    CHECK(holds(run_kernel(1, 32,
                           [] {
                             if (threadIdx.x < 16) {
                               __any_sync(0xffffffffu, 1);
                             } else {
                               __all_sync(0xffffffffu, 1);
                             }
                           }),
                "wait for this one in"));
    CHECK(holds(run_kernel(1, 32,
                           [] {
                             if (threadIdx.x < 16) __shfl_sync(0xffffu, 1, 20);
                           }),
                "reads lane 20, which is not in the mask"));
  }
  SUBCASE("more shared memory than a block has") {
    static constexpr char key = 0;
    CHECK(holds(run_kernel(1, 1, [] { shared<char>(&key, 300000); }),
                "take 300000 bytes and the launch gives 0, together 300000 of at most 232448."));
  }
  SUBCASE("dynamic shared memory that the launch did not give") {
    CHECK(holds(run_kernel(1, 1, [] { dynamic_shared_memory(Site::current()); }), "the launch gave none"));
  }
  SUBCASE("a failure by fail()") {
    CHECK(holds(run_kernel(1, 8,
                           [] {
                             if (threadIdx.x == 3) fail("three is bad", Site::current());
                           }),
                "thread (3, 0, 0), at"));
    CHECK(holds(run_kernel(1, 64,
                           [] {
                             __syncthreads();
                             if (threadIdx.x == 3) fail("three is bad", Site::current());
                             __syncthreads();
                           }),
                "thread (3, 0, 0), at"));
  }
  CHECK(run_kernel(4, 64, [] { __syncthreads(); }) == "");  // the next grid is not affected
}

TEST_CASE("odd seeds let a warp run ahead until it must wait") {
  if (kThreadSanitizer) return;  // it would report the missing barrier as a race
  for (const std::uint64_t seed : {1u, 3u, 5u, 7u}) {
    const WithSeed with(seed);
    for (const bool barrier : {false, true}) {
      std::atomic<int> wrong = 0;
      const std::string said = run_kernel(
          1, 96,
          [&] {
            int* numbers = dynamic_shared<int>();
            const auto t = static_cast<int>(threadIdx.x);
            for (int step = 0; step < 5; ++step) {
              __syncthreads();  // keeps all at the same step
              numbers[t] = step;
              if (barrier) {
                __syncthreads();
              } else {
                __syncwarp();
              }
              wrong += numbers[(t + 32) % 96] != step;
            }
          },
          96 * sizeof(int));
      CHECK(said == "");
      CHECK((wrong == 0) == barrier);
    }
  }
}
