// The CPU backend, which every build has.
#include "core/src/cpu_backend.h"

#include <doctest/doctest.h>

#include <levin/core/error.h>

using namespace levin;

TEST_CASE("a processor without the baseline's instruction sets is refused with their names") {
  CHECK_NOTHROW(require_instruction_sets({}, "all"));
  CHECK_THROWS_WITH_AS(require_instruction_sets({.pclmul = false}, "all"),
                       "[cpu] this processor lacks PCLMUL, which the kernels need; use an x86-64 processor of 2011 or "
                       "later.",
                       DeviceError);
  CHECK_THROWS_WITH_AS(require_instruction_sets({.sse4_2 = false, .pclmul = false, .aes = false}, "all"),
                       doctest::Contains("lacks SSE4.2 PCLMUL AES, which"), DeviceError);
  CHECK_NOTHROW(require_instruction_sets({.avx2 = false, .avx512 = false}, "all"));
}

TEST_CASE("a build for one instruction set refuses a processor without it") {
  CHECK_NOTHROW(require_instruction_sets({.avx2 = false, .avx512 = false}, "SSE4"));
  CHECK_NOTHROW(require_instruction_sets({.avx512 = false}, "AVX2"));
  CHECK_THROWS_WITH_AS(require_instruction_sets({.avx2 = false}, "AVX2"),
                       "[cpu] this processor lacks AVX2, which the kernels need; this build has no others, but one "
                       "with -DLEVIN_SIMD=all has.",
                       DeviceError);
  CHECK_THROWS_WITH_AS(require_instruction_sets({.avx512 = false}, "AVX3"), doctest::Contains("lacks AVX-512, which"),
                       DeviceError);
}

TEST_CASE("LEVIN_CPU_CAPABILITY cannot forbid the only instruction set of a build") {
  for (const char* limit : {"", "sse4", "avx2", "avx512"}) CHECK_NOTHROW(require_instruction_sets({}, "all", limit));
  for (const char* limit : {"", "avx2", "avx512"}) CHECK_NOTHROW(require_instruction_sets({}, "AVX2", limit));
  CHECK_NOTHROW(require_instruction_sets({}, "SSE4", "sse4"));
  CHECK_THROWS_WITH_AS(require_instruction_sets({}, "AVX2", "sse4"),
                       "LEVIN_CPU_CAPABILITY is \"sse4\", but this build has kernels for AVX2 alone; configure it with "
                       "-DLEVIN_SIMD=all, or unset LEVIN_CPU_CAPABILITY.",
                       ValueError);
  CHECK_THROWS_AS(require_instruction_sets({}, "AVX3", "sse4"), ValueError);
  CHECK_THROWS_AS(require_instruction_sets({}, "AVX3", "avx2"), ValueError);
}
