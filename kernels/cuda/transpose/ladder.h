#pragma once
// The ladder of transposing copies.

#include <levin/kernels/copy.h>

#include <span>

namespace levin::kernels::cuda {

struct TransposeRung {
  const char* name;
  const char* idea;
  bool (*can)(const CopyArgs&);  ///< true if it supports this copy
  void (*run)(const CopyArgs&, Stream&);
};

/// All rungs copy x into out, where one axis has stride 1 in out and another one in x; the last supported one is the
/// fastest.
std::span<const TransposeRung> transpose_rungs();

}  // namespace levin::kernels::cuda
