// Drivers of linear layers with int8 weights. A task is a range of outputs, by shape alone.
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/quantized/products.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/quantized/int8.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

namespace levin::kernels {

namespace cpu {

Int8Steps int8_steps(float low, float high) {
  const float step = std::max(high / 255.0f - low / 255.0f, FLT_MIN);
  return {step, static_cast<std::int32_t>(std::clamp(std::nearbyint(-low / step), 0.0f, 255.0f))};
}

Int8Steps quantize_int8(const Int8Ops& ops, const float* x, int64_t n, std::uint8_t* q) {
  float low = 0, high = 0;
  if (!ops.range(x, n, low, high)) {
    std::memset(q, 0, static_cast<std::size_t>(n));
    return {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  const Int8Steps s = int8_steps(low, high);
  ops.quantize(x, n, s.step, s.zero, q);
  return s;
}

namespace {

constexpr int64_t kTaskBytes = 65536;  // of weight

/// Operands of a call. For dynamic quantization row 0 of q is ones, whose products are the sums of the weight's rows.
struct Linear {
  int64_t m, n, k;
  const std::int8_t* weight;  // (n, k)
  const float *x, *scale, *bias;
  float* out;                     // (m, n)
  const std::uint8_t* q{};        // (1 + m, k)
  const Int8Steps* steps{};       // (m)

  explicit Linear(const LinearInt8Args& a)
      : m(a.x.size(0)), n(a.weight.size(0)), k(a.x.size(1)), weight(a.weight.data<std::int8_t>()),
        x(a.x.data<float>()), scale(a.scale.data<float>()),
        bias(a.bias.pointer ? a.bias.data<float>() : nullptr), out(a.out.data<float>()) {}

  float bias_of(int64_t j) const { return bias ? bias[j] : 0.0f; }
  /// The columns j..j+3 of the weight; beyond the last one it repeats.
  void set_columns(Int8Tile& t, int64_t j) const {
    t.k = k;
    for (int64_t c = 0; c < kInt8Columns; ++c) t.columns[c] = weight + std::min(j + c, n - 1) * k;
  }
  int64_t grain() const {
    const int64_t columns = kTaskBytes / std::max<int64_t>(k, 1);
    return std::max<int64_t>(columns / kInt8Columns, 1);  // groups of four outputs
  }
};

void weight_only_rows(const Int8Ops& ops, const Linear& l, int64_t j) {
  Int8Tile t;
  l.set_columns(t, j);
  const int64_t columns = std::min<int64_t>(kInt8Columns, l.n - j);
  float sums[kInt8Rows * kInt8Columns];
  for (int64_t i = 0; i < l.m; i += kInt8Rows) {
    const int64_t rows = std::min<int64_t>(kInt8Rows, l.m - i);
    for (int64_t r = 0; r < rows; ++r) t.rows[r] = l.x + (i + r) * l.k;
    ops.float_tile(t, static_cast<int>(rows), sums);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        l.out[(i + r) * l.n + j + c] = sums[r * kInt8Columns + c] * l.scale[j + c] + l.bias_of(j + c);
  }
}

/// For many rows: writes blocks of the weight as floats, and multiplies as usual.
void weight_only_product(const Int8Ops& ops, const Linear& l) {
  const int64_t block = std::min(std::max<int64_t>((int64_t{1} << 18) / l.k, 16), l.n);  // 1 MiB of floats
  float* w = scratch<float>(Slot::int8_weight, block * l.k);
  for (int64_t j = 0; j < l.n; j += block) {
    const int64_t columns = std::min(block, l.n - j);
    parallel_for(0, columns, std::max<int64_t>(kTaskBytes / l.k, 1), [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c)
        ops.dequantize(l.weight + (j + c) * l.k, l.k, l.scale[j + c], w + c * l.k);
    });
    GemmArgs<float> g;
    g.m = l.m, g.n = columns, g.k = l.k;
    g.a = l.x, g.a_rs = l.k, g.a_cs = 1;
    g.b = w, g.b_rs = 1, g.b_cs = l.k;
    g.c = l.out + j, g.c_rs = l.n;
    g.bias_n = l.bias ? l.bias + j : nullptr;
    gemm(g);
  }
}

void weight_only(const LinearInt8Args& a, Stream&) {
  const Linear l(a);
  constexpr int64_t few_rows = 8;
  const Int8Ops ops = int8_ops();
  if (l.m > few_rows && l.k > 0 && l.n > 0) return weight_only_product(ops, l);
  parallel_for(0, (l.n + kInt8Columns - 1) / kInt8Columns, l.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) weight_only_rows(ops, l, group * kInt8Columns);
  });
}

void dynamic_rows(const Int8Ops& ops, const Linear& l, int64_t j) {
  Int8Tile t;
  l.set_columns(t, j);
  const int64_t columns = std::min<int64_t>(kInt8Columns, l.n - j);
  std::int32_t sums[kInt8Rows * kInt8Columns], weight_sums[kInt8Columns];
  for (int64_t i = 0; i < l.m + 1; i += kInt8Rows) {
    const int64_t rows = std::min<int64_t>(kInt8Rows, l.m + 1 - i);
    for (int64_t r = 0; r < rows; ++r) t.rows[r] = l.q + (i + r) * l.k;
    ops.tile(t, static_cast<int>(rows), /*rows_unsigned=*/true, sums);
    if (i == 0) std::copy_n(sums, kInt8Columns, weight_sums);
    for (int64_t r = i == 0 ? 1 : 0; r < rows; ++r) {
      const Int8Steps s = l.steps[i + r - 1];
      float* out = l.out + (i + r - 1) * l.n + j;
      for (int64_t c = 0; c < columns; ++c) {
        const auto sum = static_cast<float>(sums[r * kInt8Columns + c] - s.zero * weight_sums[c]);
        out[c] = sum * (s.step * l.scale[j + c]) + l.bias_of(j + c);
      }
    }
  }
}

void dynamic(const LinearInt8Args& a, Stream&) {
  Linear l(a);
  const Int8Ops ops = int8_ops();
  auto* q = scratch<std::uint8_t>(Slot::int8_values, (l.m + 1) * l.k);
  auto* steps = scratch<Int8Steps>(Slot::int8_steps, l.m);
  if (l.k > 0) std::memset(q, 1, static_cast<std::size_t>(l.k));
  const int64_t grain = std::max<int64_t>(kTaskBytes / 4 / std::max<int64_t>(l.k, 1), 1);
  parallel_for(0, l.m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) steps[i] = quantize_int8(ops, l.x + i * l.k, l.k, q + (i + 1) * l.k);
  });
  l.q = q;
  l.steps = steps;
  parallel_for(0, (l.n + kInt8Columns - 1) / kInt8Columns, l.grain(), [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) dynamic_rows(ops, l, group * kInt8Columns);
  });
}

}  // namespace

}  // namespace cpu

LEVIN_HOST_ONLY(LinearInt8Args, linear_int8_weight_only, cpu::weight_only,
                "the composition with a float32 weight serves other devices");
LEVIN_HOST_ONLY(LinearInt8Args, linear_int8_dynamic, cpu::dynamic,
                "the composition with float32 values serves other devices");

}  // namespace levin::kernels
