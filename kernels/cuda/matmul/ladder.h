#pragma once
// A rung of a ladder of matrix products, for tests and benchmarks.

#include <levin/kernels/matmul.h>

namespace levin::kernels::cuda {

struct MatmulRung {
  const char* name;
  const char* idea;
  bool (*can)(const MatmulArgs&);  ///< true if it supports this product
  void (*run)(const MatmulArgs&, Stream&);
};

}  // namespace levin::kernels::cuda
