#pragma once
// The ladder of transposing copies.

#include <levin/kernels/copy.h>

#include <span>

namespace levin::kernels::cuda {

struct TransposeRung {
  const char* name;
  const char* idea;
  bool (*can)(const CopyArgs&);  ///< whether it makes this copy
  void (*run)(const CopyArgs&, Stream&);
};

/// All copy x into out where one axis has stride 1 in out and another one in x; the last one that can is the fastest.
std::span<const TransposeRung> transpose_rungs();

}  // namespace levin::kernels::cuda
