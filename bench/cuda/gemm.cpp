// The ladders of matrix products C = A B, all row-major, compared with cuBLAS.

#include "bench/cuda/problem.h"
#include "kernels/cuda/hgemm/ladder.h"
#include "kernels/cuda/sgemm/ladder.h"

#include <levin/autograd/ops.h>

namespace levin::bench {
namespace {

using kernels::MatmulArgs;
using kernels::cuda::MatmulRung;

struct GemmSize {
  int64_t m, n, k;
};

TensorView as_batch_of_one(const Tensor& t) {
  TensorView v = t.tensor_view();
  v.sizes = {1, t.size(0), t.size(1)};
  v.strides = {t.numel(), t.size(1), 1};
  return v;
}

Problem product(const std::string& family, DType dtype, const GemmSize& s, std::span<const MatmulRung> rungs) {
  const Tensor a = normal({s.m, s.k}, dtype), b = normal({s.k, s.n}, dtype), c = on_device({s.m, s.n}, dtype);
  Problem p{.family = family,
            .dtype = std::string(name_of(dtype)),
            .sizes = {{"m", s.m}, {"n", s.n}, {"k", s.k}},
            .bytes = bytes_of({a, b, c}),
            .flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k),
            .outputs = {c},
            .exact = [a, b](int64_t first, int64_t count) {
              return std::vector{matmul(rows_of(a, first, count), rows_of(b, 0, b.size(0)))};
            }};
  MatmulArgs args;
  args.out = as_batch_of_one(c), args.a = as_batch_of_one(a), args.b = as_batch_of_one(b);
  for (const MatmulRung& rung : rungs) {
    if (!rung.can(args)) continue;
    const bool tf32 = std::string(rung.name) == "tf32";
    p.rungs.push_back({.name = rung.name,
                       .run = [run = rung.run, args](Stream& stream) { run(args, stream); },
                       .peers = {cublas_peer(args, tf32)},
                       .unit = tf32 ? "tf32" : unit_of(dtype),
                       .tolerance = tf32 ? 1e-3 : tolerance_of(dtype)});
  }
  set_levels(p, dtype == DType::f32 ? "async_stages" : "warpgroups");
  return p;
}

}  // namespace

void add_gemm(std::vector<Entry>& list, Scale scale) {
  const auto add = [&](const std::string& family, DType dtype, const GemmSize& s, std::span<const MatmulRung> rungs) {
    list.push_back({family, [=] { return product(family, dtype, s, rungs); }});
  };
  const auto sgemm = kernels::cuda::sgemm_rungs(), hgemm = kernels::cuda::hgemm_rungs();
  if (scale == Scale::check) {
    add("sgemm", kFloat32, {72, 40, 48}, sgemm);
    for (const DType dtype : {kHalf, kBFloat16}) add("hgemm", dtype, {72, 40, 48}, hgemm);
    return;
  }
  add("sgemm", kFloat32, {4096, 4096, 4096}, sgemm);
  for (const DType dtype : {kHalf, kBFloat16}) {
    add("hgemm", dtype, {4096, 4096, 4096}, hgemm);
    add("hgemm", dtype, {8192, 8192, 8192}, hgemm.subspan(2));  // only the rungs with tensor cores; others take seconds
  }
}

}  // namespace levin::bench
