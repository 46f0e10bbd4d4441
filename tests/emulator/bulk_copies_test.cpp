// The copy engine and its barriers in the emulator, through the functions that kernels call.

#include "emulator/run_kernel.h"
#include "kernels/cuda/base/ptx.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace levin::emulator;
namespace ptx = levin::kernels::cuda::ptx;

namespace {

constexpr int kBox = 64 * 8 * 2;  // bytes of a box of 64 x 8

struct Matrices {
  std::vector<std::uint16_t> values;  // (3, 10, 80), of which a box reads 64 x 8
  TensorMap map;

  Matrices() : values(3 * 10 * 80) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint16_t>(i + 1);
    map.base = reinterpret_cast<const unsigned char*>(values.data());
    map.size[0] = 76, map.size[1] = 10, map.size[2] = 3;  // rows of 76, 80 apart
    map.stride[1] = 160, map.stride[2] = 1600;
    map.box[0] = 64, map.box[1] = 8;
  }
  std::uint16_t at(int matrix, int row, int column) const {
    if (matrix < 0 || matrix > 2 || row < 0 || row > 9 || column < 0 || column > 75) return 0;
    return values[static_cast<std::size_t>(matrix * 800 + row * 80 + column)];
  }
};

/// Returns the barrier behind `boxes` boxes of shared memory.
std::uint64_t* barrier_behind(int boxes) {
  return reinterpret_cast<std::uint64_t*>(dynamic_shared<unsigned char>() + boxes * kBox);
}

/// Runs a kernel of 64 threads with room for two boxes and two barriers.
std::string report_of(void (*body)(const TensorMap&, std::uint64_t*)) {
  static const Matrices matrices;
  return run_kernel(
      1, 64,
      [=] {
        std::uint64_t* barrier = barrier_behind(2);
        if (threadIdx.x == 0) {
          ptx::barrier_init(barrier, 1);
          ptx::barrier_init(barrier + 1, 2);
          ptx::barrier_init_fence();
        }
        __syncthreads();
        body(matrices.map, barrier);
      },
      2 * kBox + 16);
}

}  // namespace

TEST_CASE("a copy of a box permutes its chunks and fills what lies outside of the tensor with zeros") {
  static const Matrices matrices;
  constexpr int kStarts[][3] = {{0, 0, 0}, {16, 4, 2}, {-8, -3, 1}, {72, 9, 2}, {0, 0, 3}, {8, 1, -1}};
  for (const auto& start : kStarts) {
    std::vector<std::uint16_t> found(64 * 8, 7);
    REQUIRE(run_kernel(
                1, 64,
                [&] {
                  auto* box = dynamic_shared<std::uint16_t>();
                  std::uint64_t* barrier = barrier_behind(1);
                  if (threadIdx.x == 0) {
                    ptx::barrier_init(barrier, 1);
                    ptx::barrier_init_fence();
                  }
                  __syncthreads();
                  if (threadIdx.x == 32) {
                    const int at[5] = {start[0], start[1], start[2], 0, 0};
                    ptx::barrier_arrive(barrier, kBox);
                    ptx::copy_box<3>(box, matrices.map, at, barrier);
                  }
                  ptx::barrier_wait(barrier, 0);
                  const int column = static_cast<int>(threadIdx.x);
                  for (int row = 0; row < 8; ++row) {
                    const int chunk = column / 8 ^ row;
                    found[static_cast<std::size_t>(row * 64 + column)] = box[row * 64 + chunk * 8 + column % 8];
                  }
                },
                kBox + 8) == "");
    int wrong = 0;
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 64; ++column) {
        wrong += found[static_cast<std::size_t>(row * 64 + column)] !=
                 matrices.at(start[2], start[1] + row, start[0] + column);
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a barrier's phases end one after the other, when all have arrived and the expected bytes are copied") {
  static int order[8], count;
  count = 0;
  CHECK(report_of([](const TensorMap& map, std::uint64_t* barrier) {
          const int thread = static_cast<int>(threadIdx.x);
          ptx::barrier_wait(barrier + 1, 1);  // the phase before the first has ended
          if (thread == 0) {
            order[count++] = 0;
            ptx::barrier_arrive(barrier + 1);
            ptx::barrier_wait(barrier + 1, 0);
            order[count++] = 2;
            const int at[5] = {};
            ptx::barrier_arrive(barrier, 2 * kBox);
            ptx::copy_box<3>(dynamic_shared<unsigned char>(), map, at, barrier);
            ptx::copy_box<3>(dynamic_shared<unsigned char>() + kBox, map, at, barrier);
            ptx::barrier_wait(barrier, 0);
            order[count++] = 3;
          } else if (thread == 32) {
            for (int i = 0; i < 10; ++i) yield_thread();
            order[count++] = 1;
            ptx::barrier_arrive(barrier + 1);
          }
        }) == "");
  REQUIRE(count == 4);
  for (int i = 0; i < 4; ++i) CHECK(order[i] == i);
}

TEST_CASE("reports of invalid barriers and copies of boxes") {
  CHECK(holds(report_of([](const TensorMap&, std::uint64_t* barrier) {
                if (threadIdx.x == 0) ptx::barrier_wait(barrier, 0);
              }),
              "mbarrier: nothing ends the phase that a thread waits for"));
  CHECK(holds(report_of([](const TensorMap& map, std::uint64_t* barrier) {
                const int at[5] = {};
                if (threadIdx.x == 0) ptx::copy_box<3>(dynamic_shared<unsigned char>() + 512, map, at, barrier);
              }),
              "cp.async.bulk.tensor: the destination is not aligned to 1024 bytes"));
  CHECK(holds(report_of([](const TensorMap& map, std::uint64_t* barrier) {
                const int at[5] = {};
                if (threadIdx.x == 0) ptx::copy_box<3>(dynamic_shared<unsigned char>(), map, at, barrier);
              }),
              "the block ended before a thread waited for its copies by cp.async.bulk.tensor"));
  CHECK(holds(report_of([](const TensorMap& map, std::uint64_t* barrier) {
                static unsigned char global[kBox];
                const int at[5] = {};
                if (threadIdx.x == 0) ptx::copy_box<3>(global, map, at, barrier);
              }),
              "cp.async.bulk.tensor: the destination is not in shared memory"));
  CHECK(holds(report_of([](const TensorMap&, std::uint64_t*) {
                static std::uint64_t global = 0;
                if (threadIdx.x == 0) ptx::barrier_arrive(&global);
              }),
              "mbarrier: the barrier is not in shared memory"));
  CHECK(holds(report_of([](const TensorMap&, std::uint64_t* barrier) {
                if (threadIdx.x == 0)
                  ptx::barrier_arrive(reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(barrier) + 4));
              }),
              "mbarrier: the barrier is not aligned to 8 bytes"));
  CHECK(holds(report_of([](const TensorMap&, std::uint64_t* barrier) {
                if (threadIdx.x != 0) return;
                ptx::barrier_arrive(barrier, kBox);  // the phase stays open, as no copy has been started
                ptx::barrier_arrive(barrier);
              }),
              "mbarrier: more arrivals than the barrier expects in a phase"));
}
