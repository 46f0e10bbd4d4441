// Entry points of gemm.h: edge cases, 16-bit floats and integers.
#include "kernels/cpu/gemm/gemm.h"

#include "kernels/cpu/gemm/02_blocked.h"
#include "kernels/cpu/gemm/07_amx.h"

namespace levin::kernels::cpu {

namespace {

/// True if there is nothing to multiply; C is then beta C + bias.
template <class T>
bool degenerate(const GemmArgs<T>& g) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return true;
  if (g.k > 0) return false;
  gemm_blocked(g);
  return true;
}

/// Dense float copy (batch, rows, columns) of a 16-bit operand; the axis with unit stride stays the same.
struct Widened {
  const float* data;
  int64_t rs, cs, bs;
};

template <class T>
Widened widen(float* dst, const T* src, int64_t batch, int64_t rows, int64_t columns, int64_t bs, int64_t rs,
              int64_t cs) {
  const bool by_column = rs == 1 && cs != 1;
  const int64_t outer = by_column ? columns : rows, inner = by_column ? rows : columns;
  const int64_t outer_stride = by_column ? cs : rs, inner_stride = by_column ? rs : cs;
  const int64_t items = bs == 0 ? 1 : batch;
  parallel_for(0, items * outer, 16, [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      const T* from = src + line / outer * bs + line % outer * outer_stride;
      float* to = dst + line * inner;
      for (int64_t i = 0; i < inner; ++i) to[i] = static_cast<float>(from[i * inner_stride]);
    }
  });
  return {dst, by_column ? 1 : columns, by_column ? rows : 1, bs == 0 ? 0 : rows * columns};
}

/// Multiplies 16-bit floats: widens both operands and C, multiplies in float, rounds once.
template <class T>
void gemm_widened(const GemmArgs<T>& g) {
  if (g.m <= 0 || g.n <= 0 || g.batch <= 0) return;
  const int64_t a_size = g.m * g.k * (g.a_bs == 0 ? 1 : g.batch), b_size = g.k * g.n * (g.b_bs == 0 ? 1 : g.batch);
  const int64_t c_size = g.m * g.n * g.batch;
  float* a_data = scratch<float>(Slot::gemm_convert, a_size + b_size + c_size + g.n);
  float *b_data = a_data + a_size, *c_data = b_data + b_size, *bias = c_data + c_size;
  const Widened a = widen(a_data, g.a, g.batch, g.m, g.k, g.a_bs, g.a_rs, g.a_cs);
  const Widened b = widen(b_data, g.b, g.batch, g.k, g.n, g.b_bs, g.b_rs, g.b_cs);
  if (g.beta != 0.0f) widen(c_data, g.c, g.batch, g.m, g.n, g.batch > 1 ? g.c_bs : g.m * g.c_rs, g.c_rs, int64_t{1});
  if (g.bias_n) widen(bias, g.bias_n, 1, 1, g.n, 0, g.n, int64_t{1});
  gemm(GemmArgs<float>{.m = g.m,
                       .n = g.n,
                       .k = g.k,
                       .a = a.data,
                       .a_rs = a.rs,
                       .a_cs = a.cs,
                       .b = b.data,
                       .b_rs = b.rs,
                       .b_cs = b.cs,
                       .c = c_data,
                       .c_rs = g.n,
                       .alpha = g.alpha,
                       .beta = g.beta,
                       .bias_n = g.bias_n ? bias : nullptr,
                       .batch = g.batch,
                       .a_bs = a.bs,
                       .b_bs = b.bs,
                       .c_bs = g.m * g.n});
  parallel_for(0, g.batch * g.m, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      T* to = g.c + row / g.m * g.c_bs + row % g.m * g.c_rs;
      for (int64_t j = 0; j < g.n; ++j) to[j] = T(c_data[row * g.n + j]);
    }
  });
}

template <class T>
void gemm_floating(const GemmArgs<T>& g) {
  if (degenerate(g)) return;
  if constexpr (std::is_same_v<T, float>) gemm_amx(g);
  else gemm_in_place(g);
}

}  // namespace

void gemm(const GemmArgs<float>& args) { gemm_floating(args); }
void gemm(const GemmArgs<double>& args) { gemm_floating(args); }
void gemm(const GemmArgs<Half>& args) { gemm_widened(args); }
void gemm(const GemmArgs<BFloat16>& args) { gemm_widened(args); }
void gemm(const GemmArgs<std::int64_t>& args) { gemm_blocked(args); }
void gemm(const GemmArgs<std::int32_t>& args) { gemm_blocked(args); }
void gemm(const GemmArgs<std::int16_t>& args) { gemm_blocked(args); }
void gemm(const GemmArgs<std::int8_t>& args) { gemm_blocked(args); }
void gemm(const GemmArgs<std::uint8_t>& args) { gemm_blocked(args); }

int64_t prepared_bytes(int64_t rows, int64_t n, int64_t k) {
  constexpr int64_t least_rows = 16, least_columns = 128, least_terms = 128;
  if (rows < least_rows || n < least_columns || k < least_terms || !detail::usable_amx_unit()) return 0;
  return detail::PreparedB::bytes(detail::AmxPlan(rows, n, k));
}

}  // namespace levin::kernels::cpu
