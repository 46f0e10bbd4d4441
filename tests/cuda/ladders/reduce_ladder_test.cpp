// Every rung of the reduction ladder compared with sums in double; and shapes of the other kernels that the operation
// cases do not cover.

#include "kernels/cuda/reduce/ladder.h"
#include "support/small_cases.h"
#include "support/tolerance.h"

#include <levin/autograd/ops.h>
#include <levin/core/generator.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

using namespace levin;
using namespace levin::test;

namespace {

Tensor random_floats(const Shape& sizes) {
  Generator g(5);
  std::vector<double> v(static_cast<std::size_t>(sizes.numel()));
  for (double& x : v) x = 2.0 * g.uniform() - 1.0;
  return from_data(v, sizes, {.dtype = kFloat32});
}

std::vector<double> sums_of_lines(const Tensor& x) {
  const std::vector<double> v = x.to_vector<double>();
  const int64_t rows = x.size(0), n = x.size(1);
  std::vector<double> sums;
  for (int64_t r = 0; r < rows; ++r) sums.push_back(std::accumulate(v.begin() + r * n, v.begin() + (r + 1) * n, 0.0));
  return sums;
}

}  // namespace

TEST_CASE("every rung of the reduction ladder computes the sums of rows") {
  const auto rungs = kernels::cuda::reduce_rungs();
  CHECK(rungs.size() >= 5);
  for (const auto& rung : rungs) {
    CAPTURE(rung.name);
    for (const Shape& sizes :
         {Shape{1, 1}, {3, 31}, {2, 33}, {1, 1000}, {3, 0}, {0, 7}, {1, 1024}, {2, 5003}, {1, 70001}}) {
      if (small_cases() && sizes.numel() > 20000) continue;
      CAPTURE(to_string(sizes));
      const Tensor host = random_floats(sizes), x = host.to(cuda(0));
      Tensor out = empty({sizes[0], 1}, {.device = cuda(0)});
      Stream stream = current_stream(cuda(0));
      const kernels::SumArgs args{out.tensor_view(), x.tensor_view(), 2.0};
      REQUIRE(rung.can(args));
      rung.run(args, stream);
      std::vector<double> expected = sums_of_lines(host);
      for (double& e : expected) e /= 2.0;
      CHECK(compare(out.to(kCpu), expected, {.ulps = 1, .scale = 0.01}, 1) == "");
    }
  }
}

TEST_CASE("rungs with 16-byte loads give the same bits from an unaligned address") {
  const Tensor x = random_floats({1, 5003}).to(cuda(0));
  const Tensor shifted = zeros({1, 5004}, {.device = cuda(0)});
  Tensor view = shifted.slice(1, {1, 5004});
  view.copy_(x);
  for (const auto& rung : kernels::cuda::reduce_rungs()) {
    CAPTURE(rung.name);
    Stream stream = current_stream(cuda(0));
    Tensor a = empty({1, 1}, {.device = cuda(0)}), b = empty({1, 1}, {.device = cuda(0)});
    rung.run({a.tensor_view(), x.tensor_view()}, stream);
    rung.run({b.tensor_view(), view.tensor_view()}, stream);
    CHECK(a.to(kCpu).to_vector<float>() == b.to(kCpu).to_vector<float>());
  }
}

TEST_CASE("sums over any axes of larger tensors: rows, scattered elements and columns") {
  struct Form {
    Shape sizes, kept;
  };
  for (const Form& f : {Form{{2, 20011}, {2, 1}},
                        {{20011, 2}, {1, 2}},
                        {{1500, 40}, {1, 40}},
                        {{40, 1500}, {40, 1}},
                        {{5, 300, 40}, {1, 300, 1}},
                        {{33, 40, 30}, {33, 1, 30}},
                        {{40, 33}, {40, 33}},
                        {{600, 2, 37}, {1, 2, 1}}}) {
    CAPTURE(to_string(f.sizes));
    for (const bool transposed : {false, true}) {
      CAPTURE(transposed);
      const Tensor host = random_floats(f.sizes), there = host.to(cuda(0));
      const int last = f.sizes.size() - 1;
      const Tensor x = transposed ? there.transpose(last - 1, last).contiguous().transpose(last - 1, last) : there;
      Tensor out = empty(f.kept, {.device = cuda(0)}), expected = empty(f.kept, {.dtype = kFloat64});
      Stream stream = current_stream(cuda(0)), host_stream(kCpu);
      kernels::sum({out.tensor_view(), x.tensor_view()}, stream);
      kernels::sum({expected.tensor_view(), host.tensor_view()}, host_stream);
      CHECK(compare(out.to(kCpu), expected, {.ulps = 1}) == "");
    }
  }
}

TEST_CASE("the first extremum and the first NaN of a long row are found") {
  constexpr int64_t n = 40009;
  std::vector<double> v(static_cast<std::size_t>(2 * n), 0.5);
  v[777] = v[30000] = 2.0;
  v[n + 900] = v[n + 20000] = std::numeric_limits<double>::quiet_NaN();
  for (const bool columns : {false, true}) {
    CAPTURE(columns);
    const Tensor lines = from_data(v, {2, n}, {.dtype = kFloat32}).to(cuda(0));
    const Tensor x = columns ? lines.transpose(0, 1).contiguous() : lines;
    Tensor values = empty({2}, {.device = cuda(0)}), indices = empty({2}, {.dtype = kInt64, .device = cuda(0)});
    Stream stream = current_stream(cuda(0));
    const kernels::ArgReduceArgs args{values.tensor_view(), indices.tensor_view(), x.tensor_view(), columns ? 1 : 2, n,
                                      columns ? 2 : 1};
    kernels::argmax(args, stream);
    CHECK(indices.to(kCpu).to_vector<int64_t>() == std::vector<int64_t>{777, 900});
    CHECK(values.to(kCpu).to_vector<float>()[0] == 2.0f);
    CHECK(std::isnan(values.to(kCpu).to_vector<float>()[1]));
  }
}

TEST_CASE("cumulative sums of long rows continue across tiles and chunks") {
  for (const auto& [outer, n, inner] :
       {std::array<int64_t, 3>{1, 20011, 1}, {3, 1025, 1}, {2, 300, 3}, {1, 257, 1}, {1, 5000, 2}}) {
    CAPTURE(n);
    std::vector<double> v;
    for (int64_t i = 0; i < outer * n * inner; ++i) v.push_back(static_cast<double>(i * 7919 % 1000));
    const Tensor host = from_data(v, {outer, n, inner}, {.dtype = kInt32}), x = host.to(cuda(0));
    for (const bool reverse : {false, true}) {
      Tensor out = empty(host.sizes(), {.dtype = kInt64, .device = cuda(0)});
      Tensor expected = empty(host.sizes(), {.dtype = kInt64});
      Stream stream = current_stream(cuda(0)), host_stream(kCpu);
      kernels::cumsum({out.tensor_view(), x.tensor_view(), outer, n, inner, reverse}, stream);
      kernels::cumsum({expected.tensor_view(), host.tensor_view(), outer, n, inner, reverse}, host_stream);
      CHECK(compare(out.to(kCpu), expected, {}) == "");
    }
  }
}

TEST_CASE("an infinity in a long row does not affect the sums before it") {
  std::vector<double> v(9001, 1.0);
  v[8999] = std::numeric_limits<double>::infinity();
  const Tensor x = from_data(v, {9001}, {.dtype = kFloat32}).to(cuda(0));
  Stream stream = current_stream(cuda(0));
  Tensor out = empty({9001}, {.device = cuda(0)});
  kernels::cumsum({out.tensor_view(), x.tensor_view(), 1, 9001, 1, false}, stream);
  const std::vector<float> sums = out.to(kCpu).to_vector<float>();
  CHECK(sums[8998] == 8999.0f);
  CHECK(std::isinf(sums[8999]));
  CHECK(std::isinf(sums[9000]));
}

TEST_CASE("long rows of every type are sorted stably, ascending and descending, and topk and single ranks match") {
  constexpr int64_t n = 3001;
  const std::vector<DType> all = {DType::f64, DType::f32, DType::f16, DType::bf16, DType::i64,
                                  DType::i32, DType::i16, DType::i8,  DType::u8,   DType::boolean};
  for (const DType dtype : small_cases() ? std::vector{DType::f32, DType::u8} : all) {
    CAPTURE(std::string(name_of(dtype)));
    std::vector<double> v;
    for (int64_t i = 0; i < 2 * n; ++i)
      v.push_back(static_cast<double>(i * 7919 % 601) - (dtype == DType::u8 ? 0 : 300));
    if (is_floating(dtype)) {
      v[5] = v[2500] = std::numeric_limits<double>::quiet_NaN();
      v[6] = -0.0, v[7] = 0.0, v[8] = -std::numeric_limits<double>::infinity();
    }
    if (dtype == DType::i8 || dtype == DType::u8) {
      for (double& x : v) x = std::fmod(x, 100.0);
    }
    const Tensor host = from_data(v, {2, n, 1}, {.dtype = dtype}), x = host.to(cuda(0));
    for (const bool descending : {false, true}) {
      for (const auto& ranks : std::vector<std::pair<int64_t, int64_t>>{
               {0, n}, {0, 1500}, {1400, 1500}, {1499, 1500}, {0, 37}, {36, 37}}) {
        const int64_t lowest = ranks.first, k = ranks.second;
        CAPTURE(lowest);
        CAPTURE(k);
        const auto run = [&](const Tensor& source, Device device) {
          Tensor values = empty({2, k - lowest, 1}, {.dtype = dtype, .device = device});
          Tensor indices = empty({2, k - lowest, 1}, {.dtype = kInt64, .device = device});
          Stream stream = current_stream(device);
          const auto& table = k == n ? kernels::sort : kernels::topk;
          table({values.tensor_view(), indices.tensor_view(), source.tensor_view(), 2, n, 1, k, descending, lowest},
                stream);
          return std::pair(values.to(kCpu), indices.to(kCpu).to_vector<int64_t>());
        };
        const auto [values, indices] = run(x, cuda(0));
        const auto [expected_values, expected_indices] = run(host, kCpu);
        CHECK(indices == expected_indices);
        CHECK(compare(values, expected_values, {.ulps = 0}) == "");
      }
    }
  }
}
