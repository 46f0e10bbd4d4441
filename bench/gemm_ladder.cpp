// Benchmarks all rungs of the GEMM ladder, and OpenBLAS where it is installed.

#include "bench/benchmarks.h"
#include "kernels/cpu/gemm/ladder.h"

#include <levin/core/parallel.h>

#include <functional>
#include <string>
#include <vector>

#if defined(LEVIN_BENCH_OPENBLAS)
// Declared here, because the header's path differs between packages. Row-major is 101, no transpose 111, transpose 112.
extern "C" void cblas_sgemm(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha,
                            const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
extern "C" void openblas_set_num_threads(int threads);
#endif

namespace levin::bench {
namespace {

using kernels::cpu::GemmArgs;

struct Shape {
  const char* name;
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

// Squares, the products of one training step of the mlp (batch 128) and of the gpt (1024 tokens), and one row by a
// weight.
constexpr Shape kShapes[] = {
    {"256", 256, 256, 256, false, false},
    {"1024", 1024, 1024, 1024, false, false},
    {"2048", 2048, 2048, 2048, false, false},
    {"mlp_forward", 128, 512, 784, false, true},
    {"mlp_input_gradient", 128, 784, 512, false, false},
    {"mlp_weight_gradient", 512, 784, 128, true, false},
    {"gpt_qkv", 1024, 576, 192, false, true},
    {"gpt_mlp", 1024, 192, 768, false, true},
    {"one_row", 1, 1024, 1024, false, true},
};

void measure(benchmark::State& state, const Shape& s, const std::function<void(const GemmArgs<float>&)>& run) {
  const auto filled = [](int64_t size, float value) {
    return std::vector<float>(static_cast<std::size_t>(size), value);
  };
  const auto a = filled(s.m * s.k, 0.5f), b = filled(s.k * s.n, 0.25f);
  auto c = filled(s.m * s.n, 0.0f);
  const GemmArgs<float> args{.m = s.m,
                             .n = s.n,
                             .k = s.k,
                             .a = a.data(),
                             .a_rs = s.transpose_a ? 1 : s.k,
                             .a_cs = s.transpose_a ? s.m : 1,
                             .b = b.data(),
                             .b_rs = s.transpose_b ? 1 : s.n,
                             .b_cs = s.transpose_b ? s.k : 1,
                             .c = c.data(),
                             .c_rs = s.n};
  const Speed speed = speed_now();
  for (auto _ : state) {
    run(args);
    benchmark::DoNotOptimize(c.data());
  }
  const auto elements = [](int64_t rows, int64_t columns) { return static_cast<double>(rows * columns); };
  const double bytes = 4.0 * (elements(s.m, s.k) + elements(s.k, s.n) + elements(s.m, s.n));
  set_counters(state, bytes, 2.0 * elements(s.m, s.n) * static_cast<double>(s.k), speed);
}

#if defined(LEVIN_BENCH_OPENBLAS)
void openblas(const GemmArgs<float>& g) {
  openblas_set_num_threads(num_threads());
  const bool ta = g.a_cs != 1, tb = g.b_cs != 1;
  cblas_sgemm(101, ta ? 112 : 111, tb ? 112 : 111, static_cast<int>(g.m), static_cast<int>(g.n), static_cast<int>(g.k),
              g.alpha, g.a, static_cast<int>(ta ? g.a_cs : g.a_rs), g.b, static_cast<int>(tb ? g.b_cs : g.b_rs), g.beta,
              g.c, static_cast<int>(g.c_rs));
}
#endif

}  // namespace

void add_gemm_ladder(const Filters& filters) {
  for (const Shape& s : kShapes) {
    const auto add = [&](const char* name, auto run) {
      const std::string label = std::string("gemm_ladder/") + s.name + "/" + name;
      if (!wanted(label, filters)) return;
      benchmark::RegisterBenchmark(label.c_str(), [&s, run](benchmark::State& state) { measure(state, s, run); })
          ->UseRealTime();
    };
    for (const auto& rung : kernels::cpu::gemm_rungs()) add(rung.name, rung.run);
#if defined(LEVIN_BENCH_OPENBLAS)
    add("openblas", openblas);
#endif
  }
}

}  // namespace levin::bench
