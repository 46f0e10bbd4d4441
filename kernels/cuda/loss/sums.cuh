#pragma once
// From per-thread sums to the loss: each block writes its sums to scratch memory, and a final block adds them up in
// order.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/base/warp.h"

#include <levin/kernels/loss.h>

namespace levin::kernels::cuda {

inline constexpr int kLossThreads = 256;

struct LossSums {
  double loss = 0.0, weight = 0.0;
};

/// partial[block] = the sums of the block's threads.
__device__ inline void leave_sums(const LossSums& own, LossSums* partial) {
  LossSums all;
  all.loss = block_reduce(own.loss, Plus{}, 0.0);
  all.weight = block_reduce(own.weight, Plus{}, 0.0);
  if (threadIdx.x == 0) partial[blockIdx.x] = all;
}

/// norm = sum of the weights; out = sum of the losses, divided by the weights for `mean`. Either may be null.
template <class T>
__global__ void finish_loss(const LossSums* partial, int blocks, double* norm, T* out, LossReduction reduction) {
  LossSums own;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kLossThreads) {
    own.loss += partial[i].loss;
    own.weight += partial[i].weight;
  }
  const double loss = block_reduce(own.loss, Plus{}, 0.0), weight = block_reduce(own.weight, Plus{}, 0.0);
  if (threadIdx.x != 0) return;
  if (norm) *norm = weight;
  if (out) {
    *out = convert<T>(static_cast<ComputeType<T>>(reduction == LossReduction::mean ? loss / weight : loss));
  }
}

}  // namespace levin::kernels::cuda
