#include "gemm/gemm.h"
#include "kernels/src/table.h"

#include <levin/kernels/matmul.h>

namespace levin::kernels {

namespace cpu {

namespace {

/// Merges leading axes into one where strides allow, and loops over the others index by index.
template <class T>
void run(const MatmulArgs& args) {
  const TensorView &out = args.out, &a = args.a, &b = args.b;
  const int lead = out.dim() - 2;
  GemmArgs<T> g;
  g.m = out.size(lead);
  g.n = out.size(lead + 1);
  g.k = a.size(lead + 1);
  g.a_rs = a.stride(lead), g.a_cs = a.stride(lead + 1);
  g.b_rs = b.stride(lead), g.b_cs = b.stride(lead + 1);
  g.c_rs = g.n;
  g.alpha = static_cast<GemmScalar<T>>(args.alpha), g.beta = static_cast<GemmScalar<T>>(args.beta);
  g.bias_n = args.bias.pointer ? args.bias.data<T>() : nullptr;
  if (lead == 0) g.prepared_b = args.prepared_b, g.prepare_b = args.prepare_b;
  const int64_t matrix = g.m * g.n;
  if (out.numel() == 0) return;

  int split = lead;  // axes [split, lead) form one batch of constant strides
  g.batch = 1;
  for (int i = lead - 1; i >= 0; --i) {
    const bool first = g.batch == 1;
    if (out.size(i) != 1 && !first && (a.stride(i) != g.a_bs * g.batch || b.stride(i) != g.b_bs * g.batch)) break;
    if (out.size(i) != 1 && first) g.a_bs = a.stride(i), g.b_bs = b.stride(i);
    g.batch *= out.size(i);
    split = i;
  }
  g.c_bs = matrix;

  int64_t outer = 1;
  for (int i = 0; i < split; ++i) outer *= out.size(i);
  for (int64_t o = 0; o < outer; ++o) {
    int64_t rest = o, a_at = 0, b_at = 0;
    for (int i = split - 1; i >= 0; --i) {
      a_at += rest % out.size(i) * a.stride(i);
      b_at += rest % out.size(i) * b.stride(i);
      rest /= out.size(i);
    }
    g.a = a.data<T>() + a_at;
    g.b = b.data<T>() + b_at;
    g.c = out.data<T>() + o * g.batch * matrix;
    gemm(g);
  }
}

void matmul(const MatmulArgs& args, Stream&) {
  dispatch_numeric(args.out.dtype, "matmul", [&]<class T>() { run<T>(args); });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(MatmulArgs, matmul, cpu::matmul);

int64_t prepared_matrix_bytes(const TensorView& b, int64_t rows) {
  return b.device == kCpu && b.dtype == DType::f32 ? cpu::prepared_bytes(rows, b.size(1), b.size(0)) : 0;
}

}  // namespace levin::kernels
