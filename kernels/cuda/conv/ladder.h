#pragma once
// The ladder of convolutions, for tests and benchmarks.

#include <levin/kernels/conv.h>

#include <span>

namespace levin::kernels::cuda {

/// An implementation of the three convolutions, each with its contract's arguments.
struct ConvRung {
  const char* name;
  const char* idea;
  bool (*can)(const Conv2dArgs&);  ///< true if it supports these arguments, for all three
  void (*forward)(const Conv2dArgs&, Stream&);
  void (*backward_input)(const Conv2dArgs&, Stream&);
  void (*backward_weight)(const Conv2dArgs&, Stream&);
};

std::span<const ConvRung> conv_rungs();

}  // namespace levin::kernels::cuda
