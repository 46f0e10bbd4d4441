// cp.async and named barriers through the functions that kernels call, and the emulator's reports of misuse.

#include "emulator/run_kernel.h"
#include "kernels/cuda/base/ptx.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <vector>

using namespace levin::emulator;
namespace ptx = levin::kernels::cuda::ptx;

namespace {

/// 128 threads fetch 4 ints each, and each reads those of another thread. Returns the number of wrong elements.
int fetch_and_read(std::uint64_t seed, bool wait) {
  const WithSeed with(seed);
  std::vector<int> global(512);
  for (std::size_t i = 0; i < 512; ++i) global[i] = static_cast<int>(i);
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    int* tile = dynamic_shared<int>();
    const int t = thread_number();
    ptx::cp_async16(tile + 4 * t, &global[static_cast<std::size_t>(4 * t)]);
    ptx::cp_async_commit();
    if (wait) ptx::cp_async_wait<0>();
    __syncthreads();
    for (int i = 0; i < 4; ++i) wrong += tile[4 * (127 - t) + i] != 4 * (127 - t) + i;
  };
  CHECK(run_kernel(1, 128, kernel, 2048) == "");
  return wrong;
}

}  // namespace

TEST_CASE("cp.async: correct for every seed with its wait, wrong for some without") {
  int wrong_seeds = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK(fetch_and_read(seed, true) == 0);
    if (!kThreadSanitizer) wrong_seeds += fetch_and_read(seed, false) > 0;
  }
  if (!kThreadSanitizer) CHECK(wrong_seeds > 0);
}

TEST_CASE("cp.async completes at a moment that depends on the seed; until then its destination is NaN") {
  int early = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const WithSeed with(seed);
    const float source = 3.5f;
    const auto kernel = [&] {
      float* value = dynamic_shared<float>();
      *value = 1.0f;
      ptx::cp_async4(value, &source);
      CHECK(std::isnan(as_it_is(*value)));
      for (int i = 0; i < 4; ++i) yield_thread();
      const float now = as_it_is(*value);
      CHECK((std::isnan(now) || now == 3.5f));
      early += now == 3.5f;
      ptx::cp_async_wait_all();
      CHECK(*value == 3.5f);
    };
    CHECK(run_kernel(1, 1, kernel, 16) == "");
    if (seed == 0) CHECK(early == 0);  // as late as possible
  }
  CHECK(early > 0);
  CHECK(early < 19);
}

TEST_CASE("cp.async fills with zeros after source_bytes") {
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    auto* tile = dynamic_shared<unsigned char>();
    alignas(16) unsigned char source[16];
    for (int i = 0; i < 16; ++i) source[i] = static_cast<unsigned char>(i + 1);
    for (const int size : {16, 8, 4}) {
      for (int bytes = 0; bytes <= size; ++bytes) {
        const void* from = bytes > 0 ? source : nullptr;  // without bytes the address does not matter
        if (size == 16) ptx::cp_async16(tile, from, bytes);
        if (size == 8) ptx::cp_async8(tile, from, bytes);
        if (size == 4) ptx::cp_async4(tile, from, bytes);
        ptx::cp_async_wait_all();
        for (int i = 0; i < size; ++i) wrong += tile[i] != (i < bytes ? i + 1 : 0);
      }
    }
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const WithSeed with(seed);
    CHECK(run_kernel(1, 1, kernel, 32) == "");
  }
  CHECK(wrong == 0);
}

namespace {

/// Three stages in flight, of which `pending` may still be when one is read. Counts the wrong elements.
template <int pending>
int read_stages(std::uint64_t seed) {
  const WithSeed with(seed);
  constexpr int steps = 10, stages = 3;
  std::vector<int> global(steps * 32);
  for (std::size_t i = 0; i < global.size(); ++i) global[i] = static_cast<int>(i);
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    int* ring = dynamic_shared<int>();  // (stages, 32)
    const int t = thread_number();
    const auto fetch = [&](int step) {
      if (step < steps) ptx::cp_async4(ring + step % stages * 32 + t, &global[static_cast<std::size_t>(step * 32 + t)]);
      ptx::cp_async_commit();  // an empty group at the end keeps the count
    };
    for (int step = 0; step < stages - 1; ++step) fetch(step);
    for (int step = 0; step < steps; ++step) {
      ptx::cp_async_wait<pending>();
      __syncthreads();
      wrong += ring[step % stages * 32 + (t + 1) % 32] != step * 32 + (t + 1) % 32;
      fetch(step + stages - 1);
    }
  };
  CHECK(run_kernel(1, 32, kernel, stages * 128) == "");
  return wrong;
}

}  // namespace

TEST_CASE("cp.async groups: a wait leaves only the newest pending") {
  int too_many_pending = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CHECK(read_stages<1>(seed) == 0);
    CHECK(read_stages<0>(seed) == 0);
    if (!kThreadSanitizer) too_many_pending += read_stages<2>(seed);
  }
  if (!kThreadSanitizer) CHECK(too_many_pending > 0);
}

TEST_CASE("a named barrier blocks only its warps") {
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    int* flag = dynamic_shared<int>();
    const int t = thread_number(), pair_of_warps = ptx::warp_id() / 2;
    flag[t] = t;
    ptx::named_barrier(1 + pair_of_warps, 64);
    const int other = 64 * pair_of_warps + (t + 33) % 64;
    wrong += flag[other] != other;
  };
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const WithSeed with(seed);
    CHECK(run_kernel(1, {16, 4, 2}, kernel, 512) == "");
  }
  CHECK(wrong == 0);
}

TEST_CASE("reports of invalid copies and barriers name the error and its place") {
  alignas(16) static char global[64];
  const auto report = [](std::function<void(char*)> copy) {
    return run_kernel(
        1, 32, [&] { copy(dynamic_shared<char>()); }, 64);
  };
  CHECK(holds(report([](char*) { ptx::cp_async16(global + 16, global); }), "destination is not in shared memory"));
  CHECK(holds(report([](char* s) { ptx::cp_async16(s + 8, global); }), "destination is not aligned"));
  CHECK(holds(report([](char* s) { ptx::cp_async16(s, global + 4); }), "source is not aligned"));
  CHECK(holds(report([](char* s) { ptx::cp_async8(s, s + 8); }), "source is in shared memory"));
  CHECK(holds(report([](char* s) { ptx::cp_async4(s, nullptr); }), "source is null"));
  CHECK(holds(report([](char* s) { ptx::cp_async4(s, global, 5); }), "source_bytes is out of range"));
  CHECK(holds(report([](char*) { ptx::named_barrier(1, 40); }), "whole warps only"));
  CHECK(holds(report([](char*) { ptx::named_barrier(16, 32); }), "barrier 16 does not exist"));
  const std::string text = report([](char* s) { ptx::cp_async8(s, global, -1); });
  CHECK(holds(text, "source_bytes is out of range"));
  CHECK(holds(text, "kernel test, block (0, 0, 0), thread ("));
  CHECK(holds(text, "async_copy_test.cpp"));
}
