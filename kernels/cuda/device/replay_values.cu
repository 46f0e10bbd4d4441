// Writes the values that change between the replays of a graph.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/device/recording.h"

namespace levin::kernels::cuda {

/// to (count)
__global__ void write_values(GeneratorState* to, const __grid_constant__ ReplayValues values, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) to[i] = values.at[i];
}

void write_replay_values(GeneratorState* to, const ReplayValues& values, int count, const Stream& stream) {
  launch(write_values, {.block = ReplayValues::kMost, .stream = stream}, to, values, count);
}

}  // namespace levin::kernels::cuda
