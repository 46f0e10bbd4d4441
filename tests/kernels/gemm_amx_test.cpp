// Products by the matrix unit: with a unit that is emulated, on every processor, and with the processor's own.
#include "kernels/cpu/gemm/07_amx.h"

#include "gemm_problem.h"
#include "on_every_target.h"

#include <levin/core/tensor.h>

#include <array>
#include <bit>
#include <cmath>

using namespace levin;
using namespace levin::kernels::cpu;
using namespace levin::test;

namespace {

std::atomic<int64_t> emulated_blocks{0}, open_units{0};

float widened(std::uint16_t part) { return std::bit_cast<float>(std::uint32_t{part} << 16); }

/// Multiplies two tiles as Intel's manual describes TDPBF16PS: sums of even and of odd terms, then both to C.
void multiply_tiles(const std::uint16_t* a, const std::uint16_t* b, float (&c)[kStripWidth][kStripWidth]) {
  for (int64_t i = 0; i < kStripWidth; ++i)
    for (int64_t j = 0; j < kStripWidth; ++j) {
      float even = 0, odd = 0;
      for (int64_t p = 0; p < kStepTerms / 2; ++p) {
        const std::uint16_t *x = a + i * kStepTerms + 2 * p, *y = b + p * kStepTerms + 2 * j;
        even += widened(x[0]) * widened(y[0]);
        odd += widened(x[1]) * widened(y[1]);
      }
      c[i][j] += even + odd;
    }
}

void emulated_block(const AmxBlock& block) {
  ++emulated_blocks;
  for (int64_t r = 0; r < block.row_strips; ++r)
    for (int64_t q = 0; q < block.column_strips; ++q) {
      float c[kStripWidth][kStripWidth] = {};
      for (int64_t i = 0; i < kStripWidth && block.start; ++i)
        for (int64_t j = 0; j < kStripWidth; ++j)
          c[i][j] = block.start[(r * kStripWidth + i) * block.start_rs + q * kStripWidth + j];
      for (int64_t s = 0; s < block.steps; ++s)
        for (const PartPair& pair : kPartPairs)
          multiply_tiles(block.a + r * block.strip + s * kStepNumbers + kPlacesOfA[pair.a] * kTileNumbers,
                         block.b + q * block.strip + s * kStepNumbers + kPlacesOfB[pair.b] * kTileNumbers, c);
      for (int64_t i = 0; i < kStripWidth; ++i)
        for (int64_t j = 0; j < kStripWidth; ++j)
          block.c[(r * kStripWidth + i) * block.c_rs + q * kStripWidth + j] = c[i][j];
    }
}

constexpr MatrixUnit kEmulated{.begin = [] { ++open_units; }, .block = &emulated_block, .end = [] { --open_units; }};

/// Computes with the emulated unit; returns how many blocks it computed.
int64_t run_emulated(const GemmArgs<float>& args) {
  emulated_blocks = 0;
  levin::kernels::cpu::detail::run_amx(args, kEmulated);
  CHECK(open_units == 0);
  return emulated_blocks;
}

void check_both_units(const Problem& p) {
  Product<float> emulated(p);
  CHECK(run_emulated(emulated.args) > 0);
  CHECK_MESSAGE(emulated.worst() <= 1.0, describe(p));
  if (const MatrixUnit* const unit = amx_unit()) {
    Product<float> product(p);
    levin::kernels::cpu::detail::run_amx(product.args, *unit);
    CHECK_MESSAGE(std::memcmp(product.c.data(), emulated.c.data(), product.c.size() * sizeof(float)) == 0, describe(p));
  }
}

/// A product of (40, 48, 64) whose elements are 1 to 2 times a power of two.
Product<float> scaled_product(int exponent_of_a, int exponent_of_b) {
  Product<float> product({.m = 40, .n = 48, .k = 64, .transpose_b = true});
  for (float& x : product.a) x = std::ldexp(1 + std::abs(x) / 2, exponent_of_a);
  for (float& x : product.b) x = std::ldexp(1 + std::abs(x) / 2, exponent_of_b);
  return product;
}

}  // namespace

TEST_CASE("gemm by the matrix unit: strips, blocks and tasks that are not full, all transposes and strides") {
  test::on_every_target([] {
    for (const int64_t m : {1, 16, 17, 33, 129}) {
      for (const int64_t n : {15, 32, 48, 70}) {
        for (const int64_t k : {1, 31, 64}) {
          const bool ta = (m + n) % 2 == 0, tb = (n + k) % 2 == 0;
          check_both_units({.m = m, .n = n, .k = k, .transpose_a = ta, .transpose_b = tb, .gap = n % 2});
          check_both_units({.m = m, .n = n, .k = k, .transpose_a = !ta, .transpose_b = !tb, .spread = 1 + k % 2});
        }
      }
    }
  });
}

TEST_CASE("gemm by the matrix unit: alpha, beta and bias, in whole blocks and at edges, over two ranges of k") {
  for (const int64_t n : {64, 75}) {
    for (const int64_t k : {100, 1100}) {
      check_both_units({.m = 64, .n = n, .k = k, .bias = true});
      check_both_units({.m = 40, .n = n, .k = k, .transpose_a = true, .beta = 1});
      check_both_units({.m = 64, .n = n, .k = k, .transpose_b = true, .beta = 1, .bias = true});
      check_both_units({.m = 50, .n = n, .k = k, .alpha = -0.5, .beta = 2, .bias = true});
      check_both_units({.m = 32, .n = n, .k = k, .alpha = 3});
    }
  }
}

TEST_CASE("gemm by the matrix unit: each product is exact to two units in the last place of a float") {
  Product<float> product({.m = 64, .n = 64, .k = 64});
  for (int64_t i = 0; i < 64; ++i)  // one term of each sum is not zero
    for (int64_t p = 0; p < 64; ++p)
      if (p != i) product.a[static_cast<std::size_t>(i * 64 + p)] = 0;
  run_emulated(product.args);
  for (int64_t i = 0; i < 64; ++i)
    for (int64_t j = 0; j < 64; ++j) {
      const double a = product.args.a[i * 65], b = product.args.b[i * 64 + j];
      CHECK(static_cast<double>(product.args.c[i * product.args.c_rs + j]) == approx(a * b, {.relative = 0x1p-22}));
    }
}

TEST_CASE("gemm by the matrix unit: magnitudes that leave its range are computed without it") {
  const auto fits = [](int a, int b) {
    Product<float> product = scaled_product(a, b);
    const bool used = run_emulated(product.args) > 0, overflows = a + b + 6 > 127;
    if (!overflows) CHECK_MESSAGE(product.worst() <= 1.0, "exponents ", a, " and ", b);
    return used;
  };
  CHECK(fits(0, 0));
  CHECK(fits(-50, -51));
  CHECK_FALSE(fits(-50, -52));  // products of parts below 2^-126
  CHECK(fits(-101, 0));
  CHECK(fits(0, -101));
  CHECK_FALSE(fits(-102, 60));  // low parts below 2^-126
  CHECK_FALSE(fits(60, -102));
  CHECK_FALSE(fits(-140, 20));
  CHECK(fits(100, 16));
  CHECK_FALSE(fits(64, 61));  // products beyond 2^125
  CHECK_FALSE(fits(125, -30));  // a number beyond 2^125
}

TEST_CASE("gemm by the matrix unit: one small magnitude is seen in each half of a step, of both operands") {
  for (const int64_t term : {5, 20, 37, 63}) {
    for (const bool transposed : {false, true}) {
      for (const bool of_a : {false, true}) {
        Product<float> product({.m = 200, .n = 48, .k = 64, .transpose_a = transposed, .transpose_b = transposed});
        const GemmArgs<float>& g = product.args;
        (of_a ? product.a[product.at(g.a_cs * term)] : product.b[product.at(g.b_rs * term)]) = 1e-38F;
        const int64_t blocks = run_emulated(g);
        CHECK(blocks == (of_a ? 8 : 0));  // those of the second task of rows, 4 by 2
        CHECK(product.worst() <= 1.0);
      }
    }
  }
}

TEST_CASE("gemm by the matrix unit: zeros fit with any finite numbers, and infinity and NaN pass through") {
  Product<float> zeros = scaled_product(0, -60);
  std::fill(zeros.a.begin(), zeros.a.end(), 0.0F);
  CHECK(run_emulated(zeros.args) > 0);
  CHECK(zeros.worst() == 0.0);
  for (const float special : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const bool zero_a : {true, false}) {
      Product<float> product = scaled_product(0, 0);
      if (zero_a) std::fill(product.a.begin(), product.a.end(), 0.0F);
      product.b[0] = special;  // of column 0
      CHECK(run_emulated(product.args) == 0);
      CHECK(std::isnan(product.args.c[0]) == (zero_a || std::isnan(special)));
      CHECK(std::isfinite(product.args.c[1]));
    }
  }
}

TEST_CASE("gemm by the matrix unit: only the tasks whose rows leave the range are computed without it") {
  Product<float> product({.m = 1100, .n = 40, .k = 64, .bias = true});
  const int64_t all = run_emulated(product.args);
  product.a[200 * 64] = 1e-38F;
  const int64_t some = run_emulated(product.args);
  CHECK(some < all);
  CHECK(some > all / 2);
  CHECK(product.worst() <= 1.0);
  Product<float> ranges({.m = 1100, .n = 40, .k = 1100, .transpose_a = true, .beta = 0.5, .bias = true});
  ranges.a[1050 * 1100 + 900] = 1e-38F;  // in the second range of one task
  ranges.a[10 * 1100 + 300] = 1e-38F;    // in the first range of another
  run_emulated(ranges.args);
  CHECK(ranges.worst() <= 1.0);
  Product<float> columns({.m = 40, .n = 300, .k = 64, .bias = true});  // tasks of columns, which share A
  CHECK(run_emulated(columns.args) > 0);
  columns.a[0] = 1e-38F;
  CHECK(run_emulated(columns.args) == 0);
  CHECK(columns.worst() <= 1.0);
}

TEST_CASE("gemm by the matrix unit: so many columns at once that B's strips fit into the memory allowed for them") {
  const Problem p{.m = 150, .n = 150, .k = 40, .transpose_b = true, .beta = 1, .bias = true};
  Product<float> at_once(p), in_parts(p);
  const int64_t blocks = run_emulated(at_once.args);
  emulated_blocks = 0;
  levin::kernels::cpu::detail::run_amx(in_parts.args, kEmulated, 26 << 10);  // two blocks of columns
  CHECK(emulated_blocks == blocks);
  CHECK(std::memcmp(at_once.c.data(), in_parts.c.data(), at_once.c.size() * sizeof(float)) == 0);
  CHECK(in_parts.worst() <= 1.0);
}

TEST_CASE("gemm by the matrix unit: products by a prepared matrix have the bits of others, over two ranges of k") {
  for (const int64_t k : {90, 1100}) {
    const Problem p{.m = 33, .n = 150, .k = k, .transpose_b = true, .beta = 0.5, .bias = true};
    Product<float> plain(p);
    run_emulated(plain.args);
    const levin::kernels::cpu::detail::AmxPlan plan(p.m, p.n, p.k);
    const Tensor memory = empty({levin::kernels::cpu::detail::PreparedB::bytes(plan)}, {.dtype = kUInt8});
    for (const bool first : {true, false}) {
      Product<float> prepared(p);
      prepared.args.prepared_b = memory.data<std::uint8_t>();
      prepared.args.prepare_b = first;
      if (!first) prepared.args.b = nullptr;  // which later products do not read
      CHECK(run_emulated(prepared.args) > 0);
      CHECK(std::memcmp(plain.c.data(), prepared.c.data(), plain.c.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gemm by the matrix unit: a prepared matrix that leaves the range is multiplied without the unit") {
  const Problem p{.m = 33, .n = 150, .k = 90};
  const levin::kernels::cpu::detail::AmxPlan plan(p.m, p.n, p.k);
  const Tensor memory = empty({levin::kernels::cpu::detail::PreparedB::bytes(plan)}, {.dtype = kUInt8});
  for (const bool first : {true, false}) {
    Product<float> product(p);
    product.b[40] = 1e-38F;
    product.args.prepared_b = memory.data<std::uint8_t>();
    product.args.prepare_b = first;
    CHECK(run_emulated(product.args) == 0);
    CHECK(product.worst() <= 1.0);
  }
}

TEST_CASE("gemm by the matrix unit: the same bits with any number of threads") {
  const ThreadsGuard guard;
  for (const Problem& p : {Problem{.m = 300, .n = 130, .k = 90}, Problem{.m = 1100, .n = 40, .k = 64, .beta = 1}}) {
    set_num_threads(1);
    Product<float> first(p);
    run_emulated(first.args);
    for (const int threads : {2, 3}) {
      set_num_threads(threads);
      Product<float> again(p);
      run_emulated(again.args);
      CHECK(std::memcmp(first.c.data(), again.c.data(), first.c.size() * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("gemm chooses the matrix unit for large products whose numbers are used often") {
  const auto chosen = [](int64_t m, int64_t n, int64_t k) {
    return levin::kernels::cpu::detail::is_faster_by_amx({.m = m, .n = n, .k = k});
  };
  for (const auto& [m, n, k] : {std::array{256, 256, 256}, {1024, 576, 192}, {2048, 192, 128}, {2048, 512, 128},
                                {128, 512, 784}, {64, 512, 512}, {64, 4096, 1024}, {128, 9216, 192}})
    CHECK_MESSAGE(chosen(m, n, k), m, " x ", n, " x ", k);
  for (const auto& [m, n, k] : {std::array{2048, 192, 127}, {192, 192, 192}, {128, 9216, 191}, {62, 512, 784},
                                {64, 500, 784}, {160, 160, 784}, {128, 128, 9216}})
    CHECK_FALSE_MESSAGE(chosen(m, n, k), m, " x ", n, " x ", k);
}
