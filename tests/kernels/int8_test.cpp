// Sums of int8 products on every instruction set: exact, so those of all sets and of a plain loop are equal.
#include "kernels/cpu/quantized/products.h"
#include "kernels/on_every_target.h"
#include "support/comparison.h"

#include <levin/autograd/ops.h>
#include <levin/core/parallel.h>

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace levin;
namespace cpu = levin::kernels::cpu;

namespace {

template <class T>
std::vector<T> bytes(std::size_t n, int low, int high, unsigned seed) {
  std::vector<T> values(n);
  for (auto& v : values) {
    seed = seed * 1664525U + 1013904223U;
    v = static_cast<T>(low + static_cast<int>(seed >> 8) % (high - low + 1));
  }
  return values;
}

template <class Row, class Column>
void check_tiles(const cpu::Int8Ops& ops, int64_t k, const std::vector<Row>& rows, const std::vector<Column>& columns) {
  for (int count = 1; count <= 4; ++count) {
    cpu::Int8Tile t{};
    t.k = k;
    const auto terms = static_cast<std::size_t>(k);
    for (std::size_t i = 0; i < 4; ++i) {
      t.rows[i] = rows.data() + i * terms;
      t.columns[i] = columns.data() + i * terms;
    }
    std::int32_t sums[16];
    ops.tile(t, count, std::is_same_v<Row, std::uint8_t>, sums);
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i)
      for (std::size_t j = 0; j < 4; ++j) {
        std::int64_t expected = 0;
        for (std::size_t p = 0; p < terms; ++p) expected += rows[i * terms + p] * columns[j * terms + p];
        CHECK_MESSAGE(sums[i * 4 + j] == expected, "terms ", k, ", rows ", count, ", element ", i, ", ", j);
      }
  }
}

}  // namespace

TEST_CASE("tiles of int8 products are exact with every instruction set") {
  test::on_every_target([] {
    for (const bool dot_instructions : {true, false}) {
      const cpu::Int8Ops ops = cpu::int8_ops(dot_instructions);
      for (const int64_t k : {1, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 256, 1000}) {
        const auto n = static_cast<std::size_t>(4 * k);
        check_tiles(ops, k, bytes<std::uint8_t>(n, 0, 255, 1), bytes<std::int8_t>(n, -127, 127, 2));
        check_tiles(ops, k, bytes<std::int8_t>(n, -127, 127, 3), bytes<std::uint8_t>(n, 0, 255, 4));
      }
      // The greatest magnitudes, of which the instructions for bytes before AVX512-VNNI would lose some.
      const std::size_t most = 4 * 65536;
      check_tiles(ops, 65536, std::vector<std::uint8_t>(most, 255), std::vector<std::int8_t>(most, 127));
      check_tiles(ops, 65536, std::vector<std::int8_t>(most, -127), std::vector<std::uint8_t>(most, 255));
    }
  });
}

TEST_CASE("values are quantized alike with every instruction set, and values that are not finite make the step NaN") {
  std::vector<float> x(77);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3 + 1;
  test::on_every_target([&] {
    const cpu::Int8Ops ops = cpu::int8_ops();
    for (const std::size_t n : {std::size_t{1}, std::size_t{5}, std::size_t{16}, std::size_t{77}}) {
      std::vector<std::uint8_t> q(n + 1, 99);
      const cpu::Int8Steps s = cpu::quantize_int8(ops, x.data(), static_cast<int64_t>(n), q.data());
      CHECK(s.step > 0);
      for (std::size_t i = 0; i < n; ++i)
        CHECK(q[i] == std::min(std::max(std::nearbyint(x[i] / s.step) + static_cast<float>(s.zero), 0.0f), 255.0f));
      CHECK(q[n] == 99);  // nothing is written behind the values
    }
    for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
      for (const std::size_t at : {std::size_t{0}, std::size_t{70}, std::size_t{76}}) {
        std::vector<float> with = x;
        with[at] = bad;
        std::vector<std::uint8_t> q(x.size(), 99);
        const cpu::Int8Steps s = cpu::quantize_int8(ops, with.data(), 77, q.data());
        CHECK(std::isnan(s.step));
        CHECK(q == std::vector<std::uint8_t>(x.size(), 0));
      }
  });
}

TEST_CASE("a row that is not finite gives NaN, and other rows of the batch do not change") {
  const Tensor x = randn({3, 70}), w = randn({9, 70});
  const auto q = quantize_weight_int8(w);
  const Tensor alone = linear_int8_dynamic(x, q.values, q.scale);
  Tensor spoilt = x.clone();
  spoilt.select(0, 1).select(0, 3).fill_(std::numeric_limits<double>::infinity());
  const Tensor y = linear_int8_dynamic(spoilt, q.values, q.scale);
  CHECK(equal(y.select(0, 0), alone.select(0, 0)));
  CHECK(equal(y.select(0, 2), alone.select(0, 2)));
  CHECK(isnan(y.select(0, 1)).all().item<bool>());
}

TEST_CASE("results do not depend on the number of threads") {
  const int before = num_threads();
  const Tensor x = randn({67, 300}), images = randn({5, 8, 20, 20});
  const auto w = quantize_weight_int8(randn({501, 300})), kernel = quantize_weight_int8(randn({17, 8, 3, 3}));
  std::vector<Tensor> first;
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    const std::vector<Tensor> y = {linear_int8_dynamic(x, w.values, w.scale),
                                   linear_int8_weight_only(x, w.values, w.scale),
                                   linear_int8_weight_only(x.narrow(0, 0, 3), w.values, w.scale),
                                   conv2d_int8_dynamic(images, kernel.values, kernel.scale, {}, {.padding = 1})};
    if (first.empty()) first = y;
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(equal(y[i], first[i]));
  }
  set_num_threads(before);
}
