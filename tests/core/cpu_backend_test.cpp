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
}
