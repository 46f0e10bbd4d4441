#pragma once
// Tensors as the copy engine (TMA) sees them.

#if defined(__CUDACC__)
#include <cuda.h>
#else
#include <levin/emulator/bulk_copies.h>
#endif

#include <cstdint>

namespace levin::kernels::cuda {

#if defined(__CUDACC__)
using TensorMap = CUtensorMap;
#else
using TensorMap = emulator::TensorMap;
#endif

/// A tensor of `rank` (3 or 5) axes of 16-bit elements, the innermost first, and the box that a copy moves.
struct TensorMapArgs {
  const void* base = nullptr;  ///< aligned to 16 bytes
  int rank = 3;
  std::int64_t size[5] = {1, 1, 1, 1, 1};
  std::int64_t stride[5] = {};  ///< in bytes, multiples of 16 but for the first; those of axes of size 1 are ignored
  int box[2] = {1, 1};          ///< extent along the first two axes: at most 64 and 256
};

/// Throws DeviceError if the driver refuses the tensor.
TensorMap make_tensor_map(const TensorMapArgs& args);

}  // namespace levin::kernels::cuda
