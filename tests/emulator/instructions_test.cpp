// PTX's matrix instructions compared with the layouts in its manual, through the functions that kernels call, and the
// emulator's reports of misuse.

#include "emulator/run_kernel.h"
#include "kernels/cuda/base/ptx.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace levin::emulator;
namespace ptx = levin::kernels::cuda::ptx;
using ptx::tf32;

namespace {

std::uint32_t pair(int low, int high) { return static_cast<std::uint32_t>(low | high << 16); }

/// Returns a recognisable value for element (r, c) of matrix i.
int code(int i, int r, int c) { return 64 * i + 8 * r + c; }

/// Returns the expected result of `ldmatrix` in lane `lane` for matrix i.
std::uint32_t loaded(bool transposed, int i, int lane) {
  const int g = lane / 4, t = lane % 4;
  return transposed ? pair(code(i, 2 * t, g), code(i, 2 * t + 1, g)) : pair(code(i, g, 2 * t), code(i, g, 2 * t + 1));
}

using Load = void (*)(std::uint32_t*, const void*);
using Store = void (*)(void*, const std::uint32_t*);
struct MatrixInstruction {
  int count;
  bool transposed;
  Load load;
  Store store;
};

#define MATRIX_INSTRUCTION(count, suffix, transposed)                                               \
  {                                                                                                 \
    count, transposed,                                                                              \
        [](std::uint32_t* r, const void* row) {                                                     \
          ptx::ldmatrix_x##count##suffix(*reinterpret_cast<std::uint32_t(*)[count]>(r), row);       \
        },                                                                                          \
        [](void* row, const std::uint32_t* r) {                                                     \
          ptx::stmatrix_x##count##suffix(row, *reinterpret_cast<const std::uint32_t(*)[count]>(r)); \
        }                                                                                           \
  }
const MatrixInstruction kMatrixInstructions[] = {
    MATRIX_INSTRUCTION(1, , false),      MATRIX_INSTRUCTION(2, , false),      MATRIX_INSTRUCTION(4, , false),
    MATRIX_INSTRUCTION(1, _trans, true), MATRIX_INSTRUCTION(2, _trans, true), MATRIX_INSTRUCTION(4, _trans, true)};

constexpr int kPitch = 24;  // elements between rows: 48 bytes, so rows do not touch

}  // namespace

TEST_CASE("ldmatrix: rows by address, elements to the documented lanes, plain and transposed") {
  for (const MatrixInstruction& m : kMatrixInstructions) {
    CAPTURE(m.count);
    CAPTURE(m.transposed);
    std::atomic<int> wrong = 0;
    const auto kernel = [&] {
      auto* tile = dynamic_shared<std::uint16_t>();  // (32, kPitch): row j of matrix i at 8 i + j
      const int lane = ptx::lane_id();
      for (int c = 0; c < 8; ++c) tile[lane * kPitch + c] = static_cast<std::uint16_t>(code(lane / 8, lane % 8, c));
      __syncwarp();
      std::uint32_t r[4] = {};
      m.load(r, lane < 8 * m.count ? tile + lane * kPitch : nullptr);  // other lanes' addresses are ignored
      for (int i = 0; i < m.count; ++i) wrong += r[i] != loaded(m.transposed, i, lane);
    };
    CHECK(run_kernel(1, 32, kernel, 32 * kPitch * 2) == "");
    CHECK(wrong == 0);
  }
}

TEST_CASE("stmatrix writes the bytes that ldmatrix reads, and no others") {
  for (const MatrixInstruction& m : kMatrixInstructions) {
    CAPTURE(m.count);
    CAPTURE(m.transposed);
    std::atomic<int> wrong = 0;
    const auto kernel = [&] {
      auto* tile = dynamic_shared<std::uint16_t>();
      const int lane = ptx::lane_id();
      std::uint32_t r[4] = {};
      for (int i = 0; i < m.count; ++i) r[i] = loaded(m.transposed, i, lane);
      m.store(lane < 8 * m.count ? tile + lane * kPitch : nullptr, r);
      __syncwarp();
      for (int c = 0; c < kPitch; ++c) {
        const bool written = lane < 8 * m.count && c < 8;
        wrong += tile[lane * kPitch + c] != (written ? code(lane / 8, lane % 8, c) : 0xffff);
      }
    };
    CHECK(run_kernel(1, 32, kernel, 32 * kPitch * 2) == "");
    CHECK(wrong == 0);
  }
}

TEST_CASE("movmatrix transposes in registers") {
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    const int lane = ptx::lane_id();
    wrong += ptx::movmatrix_trans(loaded(false, 0, lane)) != loaded(true, 0, lane);
  };
  CHECK(run_kernel(1, 32, kernel) == "");
  CHECK(wrong == 0);
}

namespace {

struct Place {
  int row, column;
};

// PTX's tables (Matrix Fragments for mma.m16n8k4, k8, k16): the position of a lane's element i.
template <class T, int k>
Place place_in_a(int i, int lane) {
  const int g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, tf32>) return {i % 2 == 0 ? g : g + 8, i < 2 ? t : t + 4};
  if constexpr (k == 8) return {i < 2 ? g : g + 8, 2 * t + (i & 1)};
  return {i < 2 || (4 <= i && i < 6) ? g : g + 8, 2 * t + (i & 1) + (i < 4 ? 0 : 8)};
}
template <class T, int k>
Place place_in_b(int i, int lane) {
  const int g = lane / 4, t = lane % 4;
  if constexpr (std::is_same_v<T, tf32>) return {i == 0 ? t : t + 4, g};
  return {2 * t + (i & 1) + (i < 2 ? 0 : 8), g};
}
Place place_in_c(int i, int lane) { return {lane / 4 + (i < 2 ? 0 : 8), lane % 4 * 2 + (i & 1)}; }

template <class T>
std::uint32_t encode(float x) {
  if constexpr (std::is_same_v<T, __half>) return __half_as_ushort(__float2half_rn(x));
  if constexpr (std::is_same_v<T, __nv_bfloat16>) return __bfloat16_as_ushort(__float2bfloat16_rn(x));
  return ptx::round_to_tf32(x);
}

/// A product of whole matrices.
template <class T, int k>
struct Product {
  static constexpr int in_register = std::is_same_v<T, tf32> ? 1 : 2;
  static constexpr int b_registers = k / (4 * in_register), a_registers = 2 * b_registers;
  float a[16][k] = {}, b[k][8] = {}, c[16][8] = {}, d[16][8] = {};

  void run() {
    const auto kernel = [&] {
      const int lane = ptx::lane_id();
      std::uint32_t ra[a_registers] = {}, rb[b_registers] = {};
      for (int i = 0; i < a_registers * in_register; ++i) {
        const Place p = place_in_a<T, k>(i, lane);
        ra[i / in_register] |= encode<T>(a[p.row][p.column]) << (16 * (i % in_register));
      }
      for (int i = 0; i < b_registers * in_register; ++i) {
        const Place p = place_in_b<T, k>(i, lane);
        rb[i / in_register] |= encode<T>(b[p.row][p.column]) << (16 * (i % in_register));
      }
      float sums[4];
      for (int i = 0; i < 4; ++i) sums[i] = c[place_in_c(i, lane).row][place_in_c(i, lane).column];
      if constexpr (k == 16) ptx::mma_m16n8k16<T>(sums, ra, rb, sums);
      if constexpr (k == 8) ptx::mma_m16n8k8<T>(sums, ra, rb, sums);
      if constexpr (k == 4) ptx::mma_m16n8k4<T>(sums, ra, rb, sums);
      for (int i = 0; i < 4; ++i) d[place_in_c(i, lane).row][place_in_c(i, lane).column] = sums[i];
    };
    REQUIRE(run_kernel(1, 32, kernel) == "");
  }

  /// Returns the number of elements of d that differ from a plain loop.
  int wrong() const {
    int n = 0;
    for (int r = 0; r < 16; ++r) {
      for (int col = 0; col < 8; ++col) {
        float sum = c[r][col];
        for (int l = 0; l < k; ++l) sum += a[r][l] * b[l][col];
        n += d[r][col] != sum;
      }
    }
    return n;
  }
};

/// Picks out every element of a, then of b, by ones in the other matrix; then uses sums of small integers, which are
/// exact in any order.
template <class T, int k>
void check_product() {
  for (int shift = 0; shift < k; ++shift) {
    Product<T, k> rows, columns;
    for (int r = 0; r < 16; ++r) {
      for (int l = 0; l < k; ++l) rows.a[r][l] = static_cast<float>(16 * r + l), columns.a[r][l] = l == (r + shift) % k;
    }
    for (int l = 0; l < k; ++l) {
      for (int n = 0; n < 8; ++n) rows.b[l][n] = l == (n + shift) % k, columns.b[l][n] = static_cast<float>(8 * l + n);
    }
    rows.run();
    columns.run();
    CHECK(rows.wrong() == 0);
    CHECK(columns.wrong() == 0);
    CHECK(rows.d[7][5] == static_cast<float>(16 * 7 + (5 + shift) % k));
    CHECK(columns.d[7][5] == static_cast<float>(8 * ((7 + shift) % k) + 5));
  }
  Product<T, k> dense;
  for (int r = 0; r < 16; ++r) {
    for (int l = 0; l < k; ++l) dense.a[r][l] = static_cast<float>((r * 7 + l * 3) % 17 - 8);
    for (int n = 0; n < 8; ++n) dense.c[r][n] = static_cast<float>((r * 5 + n) % 11 - 5);
  }
  for (int l = 0; l < k; ++l) {
    for (int n = 0; n < 8; ++n) dense.b[l][n] = static_cast<float>((l * 5 + n * 11) % 13 - 6);
  }
  dense.run();
  CHECK(dense.wrong() == 0);
}

}  // namespace

TEST_CASE("mma follows the documented fragments: f16, bf16, tf32 with float sums") {
  check_product<__half, 16>();
  check_product<__half, 8>();
  check_product<__nv_bfloat16, 16>();
  check_product<__nv_bfloat16, 8>();
  check_product<tf32, 8>();
  check_product<tf32, 4>();
}

TEST_CASE("mma with sums in f16: two per register, rounded once to even") {
  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    const int lane = ptx::lane_id(), g = lane / 4, t = lane % 4;
    const std::uint32_t ones = pair(0x3c00, 0x3c00);
    const auto bits_of_half = [](float x) { return static_cast<int>(__half_as_ushort(__float2half_rn(x))); };
    // Row r of a has ones in its first r columns, so its products with b's ones sum to r.
    std::uint32_t a[4], b[2] = {ones, ones};
    for (int i = 0; i < 4; ++i) {
      const int r = g + 8 * (i % 2), first = 2 * t + 8 * (i / 2);
      a[i] = pair(first < r ? 0x3c00 : 0, first + 1 < r ? 0x3c00 : 0);
    }
    // Above 2048 only even numbers are representable: 2049 rounds to 2048, 2051 to 2052.
    std::uint32_t c[2] = {pair(bits_of_half(2048), bits_of_half(0)), pair(bits_of_half(2048), bits_of_half(0))}, d[2];
    ptx::mma_m16n8k16<__half>(d, a, b, c);
    const auto rounded = [](int r) { return static_cast<float>(2048 + (r % 4 == 1 ? r - 1 : r % 4 == 3 ? r + 1 : r)); };
    for (int i = 0; i < 2; ++i) {
      const int r = g + 8 * i;
      wrong += d[i] != pair(bits_of_half(rounded(r)), bits_of_half(static_cast<float>(r)));
    }
    const std::uint32_t a8[2] = {a[0], a[1]}, b8[1] = {ones};
    ptx::mma_m16n8k8<__half>(c, a8, b8, c);
    for (int i = 0; i < 2; ++i) {
      const int r = std::min(g + 8 * i, 8);
      wrong += c[i] != pair(bits_of_half(rounded(r)), bits_of_half(static_cast<float>(r)));
    }
  };
  CHECK(run_kernel(1, 32, kernel) == "");
  CHECK(wrong == 0);
}

TEST_CASE("half operands of mma: subnormals, infinities and NaN are kept") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Product<__half, 16> p;
  p.a[0][0] = 0x1p-24f;  // the smallest subnormal
  p.a[1][3] = infinity;
  p.a[2][5] = std::nanf("");
  p.a[3][1] = -65504.0f;
  for (auto& row : p.b) {
    for (float& x : row) x = 2.0f;
  }
  p.run();
  CHECK(p.d[0][7] == 0x1p-23f);
  CHECK(p.d[1][0] == infinity);
  CHECK(std::isnan(p.d[2][4]));
  CHECK(p.d[3][2] == -131008.0f);
}

TEST_CASE("tf32: mma drops the 13 lowest bits, round_to_tf32 rounds ties away from zero") {
  const auto rounded = [](float x) { return std::bit_cast<float>(ptx::round_to_tf32(x)); };
  CHECK(rounded(1.0f) == 1.0f);
  CHECK(rounded(1.0f + 0x1p-11f) == 1.0f + 0x1p-10f);
  CHECK(rounded(-1.0f - 0x1p-11f) == -1.0f - 0x1p-10f);
  CHECK(rounded(1.0f + 0x1p-10f + 0x1p-11f) == 1.0f + 0x1p-9f);
  CHECK(rounded(1.0f + 0x1p-12f) == 1.0f);
  CHECK(std::isinf(rounded(std::numeric_limits<float>::max())));
  CHECK(rounded(-std::numeric_limits<float>::infinity()) == -std::numeric_limits<float>::infinity());
  CHECK(std::isnan(rounded(std::nanf(""))));

  std::atomic<int> wrong = 0;
  const auto kernel = [&] {
    const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); };
    const std::uint32_t x = bits(1.0f + 0x1p-10f + 0x1p-11f + 0x1p-23f), one = bits(1.0f);
    const std::uint32_t a[2] = {x, x}, b[1] = {one};
    float d[4];
    ptx::mma_m16n8k4<tf32>(d, a, b, {0, 0, 0, 0});
    for (const float sum : d) wrong += sum != 4 * (1.0f + 0x1p-10f);
    const std::uint32_t a_one[2] = {one, one}, b_x[1] = {x};
    ptx::mma_m16n8k4<tf32>(d, a_one, b_x, {0, 0, 0, 0});
    for (const float sum : d) wrong += sum != 4 * (1.0f + 0x1p-10f);
  };
  CHECK(run_kernel(1, 32, kernel) == "");
  CHECK(wrong == 0);
}

namespace {

/// A block's product from shared memory, as a kernel computes it: d (32, 16) = a (32, 48) b, with two warps of 16 rows.
/// b is (48, 16), or (16, 48) if `b_transposed`.
template <class T>
void multiply_tile(const int* a, const int* b, bool b_transposed, float* d) {
  constexpr int m = 32, n = 16, k = 48, pitch_a = k + 8;
  const int pitch_b = (b_transposed ? k : n) + 8;
  auto* tile_a = dynamic_shared<std::uint16_t>();  // (m, pitch_a)
  auto* tile_b = tile_a + m * pitch_a;             // (k, pitch_b) or (n, pitch_b)
  const auto element = [](int x) { return static_cast<std::uint16_t>(encode<T>(static_cast<float>(x))); };
  const int width_b = b_transposed ? k : n;
  for (int i = thread_number(); i < m * k; i += 64) tile_a[i / k * pitch_a + i % k] = element(a[i]);
  for (int i = thread_number(); i < k * n; i += 64) tile_b[i / width_b * pitch_b + i % width_b] = element(b[i]);
  __syncthreads();
  const int lane = ptx::lane_id(), first_row = 16 * ptx::warp_id();
  float sums[2][4] = {};  // columns 0 to 7, 8 to 15
  for (int l = 0; l < k; l += 16) {
    std::uint32_t ra[4], rb[4];
    ptx::ldmatrix_x4(ra, tile_a + (first_row + lane % 16) * pitch_a + l + lane / 16 * 8);
    if (b_transposed) {
      ptx::ldmatrix_x4(rb, tile_b + (lane % 8 + lane / 16 * 8) * pitch_b + l + lane / 8 % 2 * 8);
    } else {
      ptx::ldmatrix_x4_trans(rb, tile_b + (l + lane % 16) * pitch_b + lane / 16 * 8);
    }
    for (int j = 0; j < 2; ++j) ptx::mma_m16n8k16<T>(sums[j], ra, {rb[2 * j], rb[2 * j + 1]}, sums[j]);
  }
  for (int j = 0; j < 2; ++j) {
    for (int i = 0; i < 4; ++i) {
      const Place p = place_in_c(i, lane);
      d[(first_row + p.row) * n + 8 * j + p.column] = sums[j][i];
    }
  }
}

template <class T>
void check_tile(bool b_transposed) {
  std::vector<int> a(32 * 48), b(48 * 16);
  for (int i = 0; i < 32 * 48; ++i) a[static_cast<std::size_t>(i)] = i * 31 % 17 - 8;
  for (int i = 0; i < 48 * 16; ++i) b[static_cast<std::size_t>(i)] = i * 29 % 15 - 7;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const WithSeed with(seed);
    std::vector<float> d(32 * 16, -1.0f);
    CHECK(run_kernel(
              1, 64, [&] { multiply_tile<T>(a.data(), b.data(), b_transposed, d.data()); }, 8192) == "");
    int wrong = 0;
    for (int r = 0; r < 32; ++r) {
      for (int n = 0; n < 16; ++n) {
        int sum = 0;
        for (int l = 0; l < 48; ++l) {
          sum += a[static_cast<std::size_t>(r * 48 + l)] *
                 b[static_cast<std::size_t>(b_transposed ? n * 48 + l : l * 16 + n)];
        }
        wrong += d[static_cast<std::size_t>(r * 16 + n)] != static_cast<float>(sum);
      }
    }
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("a tile of integers through ldmatrix and mma is exact, b in either order") {
  for (const bool b_transposed : {false, true}) {
    check_tile<__half>(b_transposed);
    check_tile<__nv_bfloat16>(b_transposed);
  }
}

TEST_CASE("reports of invalid matrix instructions") {
  alignas(16) static std::uint16_t global[8];
  const auto report = [](std::function<void(std::uint16_t*)> body, unsigned threads = 32) {
    return run_kernel(
        1, threads, [&] { body(dynamic_shared<std::uint16_t>()); }, 1024);
  };
  std::string text = report([](std::uint16_t* s) {
    std::uint32_t r[1];
    ptx::ldmatrix_x1(r, s + 8 * ptx::lane_id() + (ptx::lane_id() == 5 ? 4 : 0));
  });
  CHECK(holds(text, "ldmatrix.x1: the row of this lane is not aligned to 16 bytes: it lies 8 bytes beyond"));
  CHECK(holds(text, "thread (5, 0, 0)"));
  CHECK(holds(report([](std::uint16_t*) {
                std::uint32_t r[4];
                ptx::ldmatrix_x4_trans(r, global);
              }),
              "ldmatrix.x4.trans: the row of this lane is not in shared memory"));
  CHECK(holds(report([](std::uint16_t* s) { ptx::stmatrix_x2(s + 2, {1, 2}); }), "stmatrix.x2: the row of this lane"));
  CHECK(holds(report([](std::uint16_t*) { ptx::movmatrix_trans(1); }, 24), "movmatrix.trans needs all 32 lanes"));
  const auto half_warp = [](std::uint16_t*) {
    if (ptx::lane_id() >= 16) return;
    float d[4] = {};
    ptx::mma_m16n8k8<__half>(d, {0, 0}, {0}, d);
  };
  CHECK(holds(report(half_warp), "lane"));
  text = report([](std::uint16_t*) {
    float d[4] = {};
    if (ptx::lane_id() < 16) {
      ptx::mma_m16n8k8<__half>(d, {0, 0}, {0}, d);
    } else {
      ptx::mma_m16n8k8<__half>(d, {0, 0}, {0}, d);
    }
  });
  CHECK(holds(text, "mma.sync in divergent code"));
}
