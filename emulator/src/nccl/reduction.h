#pragma once
// The arithmetic of reductions, as in NCCL's kernels (NVIDIA/nccl, src/device/reduce_kernel.h, and hostToDevRedOp in
// src/enqueue.cc):
//   - each hop rounds to the type: halves are added and multiplied as __hadd and __hmul do, bfloat16 likewise;
//   - min and max of floats are fmin and fmax: a number wins over NaN;
//   - the average of floats multiplies every rank's input by 1/n, rounded to the type, before the sum; that of integers
//     divides the sum at the last hop, towards zero.

#include <levin/emulator/nccl_api.h>

namespace levin::emulator::nccl {

struct Reduction {
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int ranks = 1;

  /// Applies the operation's pre-scaling to a rank's own elements; `out` may be `in`.
  void enter(char* out, const char* in, std::size_t count) const;
  /// Computes partial = enter(own) op partial.
  void combine(char* partial, const char* own, std::size_t count) const;
  /// Applies the last rank's step to the result.
  void finish(char* result, std::size_t count) const;
};

}  // namespace levin::emulator::nccl
