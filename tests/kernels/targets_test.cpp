// The instruction sets that the CPU kernels may use here, beside those that the compiler's library finds.
#include "kernels/cpu/gemm/amx.h"
#include "kernels/cpu/targets.h"

#include <levin/kernels/kernel.h>

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <string>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)  // clang 16 does not know all of these names

TEST_CASE("the processor's instruction sets are those that the compiler's library finds") {
  __builtin_cpu_init();
  const bool sse4 =
      __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
  const bool avx2 = sse4 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
                    __builtin_cpu_supports("lzcnt");
  const bool avx3 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
  const auto targets = hwy::SupportedTargets();
  CHECK(((targets & HWY_SSE4) != 0) == sse4);
  CHECK(((targets & HWY_AVX2) != 0) == avx2);
  CHECK(((targets & HWY_AVX3) != 0) == avx3);
}

#endif

TEST_CASE("the best instruction set that is compiled and supported is in use") {
  const auto usable = hwy::SupportedTargets() & HWY_TARGETS;
  REQUIRE(usable != 0);
  const std::string name = levin::kernels::cpu::simd_target();
  CHECK(name == (levin::kernels::cpu::amx_unit() ? "AMX" : hwy::TargetName(usable & -usable)));
  CHECK((hwy::SupportedTargets() & HWY_STATIC_TARGET) != 0);
}
