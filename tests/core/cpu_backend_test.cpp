// The CPU backend, which every build has.
#include "core/src/cpu_backend.h"

#include <doctest/doctest.h>

#include <levin/core/error.h>

using namespace levin;

TEST_CASE("a processor without the baseline's instruction sets is refused with their names") {
  CHECK_NOTHROW(require_instruction_sets({}));
  CHECK_THROWS_WITH_AS(require_instruction_sets({.pclmul = false}),
                       "[cpu] this processor lacks PCLMUL, which the kernels need; use an x86-64 processor of 2011 or "
                       "later.",
                       DeviceError);
  CHECK_THROWS_WITH_AS(require_instruction_sets({.sse4_2 = false, .pclmul = false, .aes = false}),
                       doctest::Contains("lacks SSE4.2 PCLMUL AES, which"), DeviceError);
  CHECK_NOTHROW(require_instruction_sets({.avx2 = false, .avx512 = false}));
}

TEST_CASE("a build for one instruction set refuses a processor without it") {
  CHECK_NOTHROW(require_only_instruction_set("SSE4", {.avx2 = false, .avx512 = false}, ""));
  CHECK_NOTHROW(require_only_instruction_set("AVX2", {.avx512 = false}, ""));
  CHECK_THROWS_WITH_AS(require_only_instruction_set("AVX2", {.avx2 = false}, ""),
                       "[cpu] this processor lacks AVX2, the only instruction set that this build has kernels for; "
                       "configure it with -DLEVIN_SIMD=all.",
                       DeviceError);
  CHECK_THROWS_WITH_AS(require_only_instruction_set("AVX3", {.avx512 = false}, ""),
                       doctest::Contains("lacks AVX-512, the only"), DeviceError);
}

TEST_CASE("LEVIN_CPU_CAPABILITY cannot forbid the only instruction set of a build") {
  for (const char* limit : {"", "avx2", "avx512"}) CHECK_NOTHROW(require_only_instruction_set("AVX2", {}, limit));
  CHECK_NOTHROW(require_only_instruction_set("SSE4", {}, "sse4"));
  CHECK_THROWS_WITH_AS(require_only_instruction_set("AVX2", {}, "sse4"),
                       "LEVIN_CPU_CAPABILITY is \"sse4\", but this build has kernels for AVX2 alone; configure it with "
                       "-DLEVIN_SIMD=all, or unset LEVIN_CPU_CAPABILITY.",
                       ValueError);
  CHECK_THROWS_AS(require_only_instruction_set("AVX3", {}, "sse4"), ValueError);
  CHECK_THROWS_AS(require_only_instruction_set("AVX3", {}, "avx2"), ValueError);
}
