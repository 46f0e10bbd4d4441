#pragma once
// The ladder of reductions, for tests and benchmarks.

#include <levin/kernels/reduce.h>

#include <span>

namespace levin::kernels::cuda {

struct ReduceRung {
  const char* name;
  const char* idea;
  bool (*can)(const SumArgs&);  ///< true if it supports this sum
  void (*run)(const SumArgs&, Stream&);
};

/// All rungs compute the same sums of contiguous float32 lines.
std::span<const ReduceRung> reduce_rungs();

}  // namespace levin::kernels::cuda
