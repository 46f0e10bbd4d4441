#pragma once
// The ladder of softmax, for tests and benchmarks.

#include <levin/kernels/softmax.h>

#include <span>

namespace levin::kernels::cuda {

struct SoftmaxRung {
  const char* name;
  const char* idea;
  bool (*can)(const SoftmaxArgs&);  ///< true if it supports such rows
  void (*run)(const SoftmaxArgs&, Stream&);
};

/// All rungs compute softmax along the last axis (inner is 1) of float32 and float16.
std::span<const SoftmaxRung> softmax_rungs();

}  // namespace levin::kernels::cuda
