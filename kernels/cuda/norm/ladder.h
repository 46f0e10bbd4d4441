#pragma once
// The ladder of layer norm, for tests and benchmarks.

#include <levin/kernels/norm.h>

#include <span>

namespace levin::kernels::cuda {

struct LayerNormRung {
  const char* name;
  const char* idea;
  bool (*can)(const LayerNormArgs&);  ///< true if it supports such rows
  void (*run)(const LayerNormArgs&, Stream&);
};

/// All rungs compute layer norm of float32.
std::span<const LayerNormRung> layer_norm_rungs();

}  // namespace levin::kernels::cuda
