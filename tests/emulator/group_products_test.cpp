// wgmma in the emulator, compared with the layouts in PTX's manual, through the functions that kernels call.

#include "emulator/run_kernel.h"
#include "kernels/cuda/base/ptx.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace levin::emulator;
namespace ptx = levin::kernels::cuda::ptx;

namespace {

constexpr int kM = 64, kN = 128, kK = 64;
constexpr int kTile = 64 * 128;  // bytes of 64 rows

/// Returns where the manual's swizzle of 128 bytes puts byte `offset` of memory aligned to 1024.
int swizzled(int offset) { return offset ^ ((offset >> 7 & 7) << 4); }

/// Returns the byte offset of an operand's element: along k in rows of 64 steps; along the lines in rows of 64 lines, a
/// row for each step, and the next 64 lines behind all steps.
int place_of(bool along_lines, int line, int k) {
  return along_lines ? line / 64 * kTile + swizzled(k * 128 + line % 64 * 2) : swizzled(line * 128 + k * 2);
}

void write(unsigned char* tile, bool along_lines, int line, int k, int value) {
  const __half number(static_cast<float>(value));
  std::memcpy(tile + place_of(along_lines, line, k), &number, sizeof(number));
}

int a_of(int row, int k) { return (row * 31 + k * 7) % 17 - 8; }
int b_of(int k, int column) { return (k * 29 + column * 5) % 15 - 7; }

template <bool lines_a, bool lines_b>
void multiply(float* d, bool twice) {
  auto* a = dynamic_shared<unsigned char>();  // (64, 64)
  auto* b = a + kTile;                        // (64, 128)
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < kM * kK; i += 128) write(a, lines_a, i / kK, i % kK, a_of(i / kK, i % kK));
  for (int i = thread; i < kN * kK; i += 128) write(b, lines_b, i / kK, i % kK, b_of(i % kK, i / kK));
  __syncthreads();
  float sums[kN / 8][4];
  const auto first = ptx::shared_operand(a, kTile), second = ptx::shared_operand(b, kTile);
  ptx::wgmma_fence();
  for (int pass = 0; pass < (twice ? 2 : 1); ++pass) {
    for (int k = 0; k < kK; k += 16) {
      ptx::wgmma_m64k16<__half, lines_a, lines_b>(sums, first.plus(k * (lines_a ? 128 : 2)),
                                                  second.plus(k * (lines_b ? 128 : 2)), pass > 0 || k > 0);
    }
    ptx::wgmma_commit();
  }
  ptx::wgmma_wait<0>();
  const int lane = ptx::lane_id(), row = 16 * ptx::warp_id() + lane / 4, column = lane % 4 * 2;
  for (int j = 0; j < kN / 8; ++j) {
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * kN + 8 * j + column + i % 2] = sums[j][i];
  }
}

template <bool lines_a, bool lines_b>
void check_product() {
  CAPTURE(lines_a);
  CAPTURE(lines_b);
  for (const bool twice : {false, true}) {
    std::vector<float> d(kM * kN, -1.0f);
    REQUIRE(run_kernel(
                1, 128, [&] { multiply<lines_a, lines_b>(d.data(), twice); }, 3 * kTile) == "");
    int wrong = 0;
    for (int row = 0; row < kM; ++row) {
      for (int column = 0; column < kN; ++column) {
        int sum = 0;
        for (int k = 0; k < kK; ++k) sum += a_of(row, k) * b_of(k, column);
        wrong += d[static_cast<std::size_t>(row * kN + column)] != static_cast<float>(twice ? 2 * sum : sum);
      }
    }
    CHECK(wrong == 0);
  }
}

/// The same with A in registers.
void multiply_registers(float* d) {
  auto* b = dynamic_shared<unsigned char>();  // (64, 128)
  const int thread = static_cast<int>(threadIdx.x), lane = ptx::lane_id();
  for (int i = thread; i < kN * kK; i += 128) write(b, true, i / kK, i % kK, b_of(i % kK, i / kK));
  __syncthreads();
  const int row = 16 * ptx::warp_id() + lane / 4, column = lane % 4 * 2;
  std::uint32_t a[kK / 16][4];
  for (int step = 0; step < kK / 16; ++step) {
    for (int i = 0; i < 4; ++i) {
      const int r = row + i % 2 * 8, k = 16 * step + column + i / 2 * 8;
      const __half pair[2] = {__half(static_cast<float>(a_of(r, k))), __half(static_cast<float>(a_of(r, k + 1)))};
      std::memcpy(&a[step][i], pair, sizeof(pair));
    }
  }
  float sums[kN / 8][4];
  ptx::wgmma_fence();
  for (int step = 0; step < kK / 16; ++step)
    ptx::wgmma_m64k16<__half, true>(sums, a[step], ptx::shared_operand(b, kTile).plus(step * 16 * 128), step > 0);
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  for (int j = 0; j < kN / 8; ++j) {
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * kN + 8 * j + column + i % 2] = sums[j][i];
  }
}

/// Runs a kernel of four warps whose operands begin at these offsets; returns the report.
std::string report_of(
    int a, int b, void (*after)(float (&)[16][4]) = [](float (&)[16][4]) { ptx::wgmma_wait<0>(); }) {
  return run_kernel(
      1, 128,
      [=] {
        auto* tile = dynamic_shared<unsigned char>();
        float sums[16][4];
        ptx::wgmma_m64k16<__half, false, true>(sums, ptx::shared_operand(tile + a, kTile),
                                               ptx::shared_operand(tile + b, kTile), false);
        ptx::wgmma_commit();
        after(sums);
      },
      3 * kTile);
}

}  // namespace

TEST_CASE("wgmma of integers is exact for operands along k and along the lines") {
  check_product<false, false>();
  check_product<false, true>();
  check_product<true, false>();
  check_product<true, true>();
}

TEST_CASE("wgmma of integers is exact with A in registers, which must keep their values until the wait") {
  std::vector<float> d(kM * kN, -1.0f);
  REQUIRE(run_kernel(
              1, 128, [&] { multiply_registers(d.data()); }, 2 * kTile) == "");
  int wrong = 0;
  for (int row = 0; row < kM; ++row) {
    for (int column = 0; column < kN; ++column) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += a_of(row, k) * b_of(k, column);
      wrong += d[static_cast<std::size_t>(row * kN + column)] != static_cast<float>(sum);
    }
  }
  CHECK(wrong == 0);
  CHECK(holds(run_kernel(
                  1, 128,
                  [] {
                    auto* tile = dynamic_shared<unsigned char>();
                    if (threadIdx.x == 0) std::memset(tile, 0, 2 * kTile);
                    __syncthreads();
                    float sums[16][4];
                    std::uint32_t a[4] = {};
                    ptx::wgmma_m64k16<__half, true>(sums, a, ptx::shared_operand(tile, kTile), false);
                    ptx::wgmma_commit();
                    a[2] = 1;
                    ptx::wgmma_wait<0>();
                  },
                  2 * kTile),
              "wgmma: the registers of A were changed before the wait"));
}

TEST_CASE("the sums of wgmma are unknown before the wait, and older groups end first") {
  CHECK(report_of(0, kTile) == "");
  static std::atomic<int> early = 0, first_ended = 0, second_open = 0, second_ended = 0;
  CHECK(report_of(0, kTile, [](float(&sums)[16][4]) {
          auto* tile = dynamic_shared<unsigned char>();
          if (threadIdx.x == 0) std::memset(tile, 0, 3 * kTile);
          __syncthreads();
          early += std::isnan(sums[0][0]);
          float second[16][4];
          const auto x = ptx::shared_operand(tile, kTile);
          ptx::wgmma_m64k16<__half, false, true>(second, x, ptx::shared_operand(tile + kTile, kTile), false);
          ptx::wgmma_commit();
          ptx::wgmma_wait<1>();
          first_ended += sums[0][0] == 0;
          second_open += std::isnan(second[0][0]);
          ptx::wgmma_wait<0>();
          second_ended += second[0][0] == 0;
        }) == "");
  CHECK(early == 128);
  CHECK(first_ended == 128);
  CHECK(second_open == 128);
  CHECK(second_ended == 128);
}

TEST_CASE("a wait for wgmma ends when all lanes of the warp have read their operands") {
  static std::atomic<int> right = 0;
  CHECK(report_of(0, kTile, [](float (&sums)[16][4]) {
          auto* tile = dynamic_shared<unsigned char>();
          const __half one(1.0f);
          for (int i = static_cast<int>(threadIdx.x); i < 3 * kTile / 2; i += 128)
            std::memcpy(tile + 2 * i, &one, sizeof(one));  // both operands
          __syncthreads();
          ptx::wgmma_wait<0>();
          if (ptx::lane_id() == 0) std::memset(tile + 16 * 128 * ptx::warp_id(), 0, 16 * 128);  // the warp's rows of A
          right += sums[0][0] == 16;
        }) == "");
  CHECK(right == 128);
}

TEST_CASE("reports of invalid products of warpgroups") {
  CHECK(holds(report_of(8, kTile), "wgmma: an operand is not aligned to 16 bytes"));
  CHECK(holds(report_of(128, kTile), "wgmma: an operand does not begin at a row that is a multiple of eight"));
  CHECK(holds(report_of(0, kTile + 32), "wgmma: an operand does not begin at a row that is a multiple of eight"));
  CHECK(holds(report_of(0, kTile, [](float(&)[16][4]) {}), "ended before it waited for its products of wgmma"));
  static unsigned char global[1024];
  CHECK(holds(run_kernel(
                  1, 128,
                  [] {
                    float sums[16][4];
                    const auto x = ptx::shared_operand(global, 0);
                    ptx::wgmma_m64k16<__half, false, false>(sums, x, x, false);
                  },
                  kTile),
              "wgmma: an operand is not in shared memory"));
  CHECK(holds(run_kernel(
                  1, 24,
                  [] {
                    float sums[16][4];
                    const auto x = ptx::shared_operand(dynamic_shared<unsigned char>(), kTile);
                    ptx::wgmma_m64k16<__half, false, false>(sums, x, x, false);
                  },
                  3 * kTile),
              "wgmma needs all 32 lanes"));
  CHECK(holds(run_kernel(1, 24, [] { ptx::wgmma_wait<0>(); }), "wgmma.wait_group needs all 32 lanes"));
  const auto part_ways = [] {
    if (threadIdx.x < 8)
      ptx::wgmma_wait<0>();
    else
      ptx::wgmma_wait<1>();
  };
  CHECK(holds(run_kernel(1, 32, part_ways), "wgmma.wait_group in divergent code"));
}
