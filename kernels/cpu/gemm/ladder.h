#pragma once
// The ladder of matrix products, for tests and benchmarks.

#include "kernels/cpu/gemm/gemm.h"

#include <span>

namespace levin::kernels::cpu {

/// One step of the ladder from a library call to the shipped kernel; all compute the same result.
struct GemmRung {
  const char* name;
  const char* idea;
  void (*run)(const GemmArgs<float>&);
};
std::span<const GemmRung> gemm_rungs();

}  // namespace levin::kernels::cpu
