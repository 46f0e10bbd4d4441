// Tensor maps by the driver, which encodes them, or for the emulator.

#include "kernels/cuda/base/tensor_map.h"

#include "kernels/cuda/base/error.h"

#include <levin/core/error.h>

#include <algorithm>
#include <string>

namespace levin::kernels::cuda {

#if defined(__CUDACC__)

namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

/// Returns the driver's function. Levin does not link the driver.
Encode encode_function() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned first_version = 12000;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, first_version, cudaEnableDefault, &found),
        "cudaGetDriverEntryPointByVersion");
  if (found != cudaDriverEntryPointSuccess)
    throw DeviceError("The CUDA driver has no cuTensorMapEncodeTiled. Install a driver for CUDA 12 or newer.");
  return reinterpret_cast<Encode>(function);
}

}  // namespace

TensorMap make_tensor_map(const TensorMapArgs& args) {
  static const Encode encode = encode_function();
  cuuint64_t size[5], stride[4];
  std::int64_t dense = 2;  // the stride of an axis of size 1 must be valid, too
  for (int i = 0; i < args.rank; ++i) {
    size[i] = static_cast<cuuint64_t>(args.size[i]);
    if (i > 0) {
      const std::int64_t own = args.size[i] > 1 ? args.stride[i] : (dense + 15) / 16 * 16;
      stride[i - 1] = static_cast<cuuint64_t>(own);
      dense = own;
    }
    dense *= args.size[i];
  }
  const cuuint32_t box[5] = {static_cast<cuuint32_t>(args.box[0]), static_cast<cuuint32_t>(args.box[1]), 1, 1, 1};
  const cuuint32_t every[5] = {1, 1, 1, 1, 1};
  TensorMap map;
  const CUresult result =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_UINT16, static_cast<cuuint32_t>(args.rank), const_cast<void*>(args.base),
             size, stride, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw DeviceError("cuTensorMapEncodeTiled returned " + std::to_string(static_cast<int>(result)) + ".");
  return map;
}

#else

TensorMap make_tensor_map(const TensorMapArgs& args) {
  TensorMap map;
  map.base = static_cast<const unsigned char*>(args.base);
  std::copy(args.size, args.size + 5, map.size);
  std::copy(args.stride, args.stride + 5, map.stride);
  std::copy(args.box, args.box + 2, map.box);
  return map;
}

#endif

}  // namespace levin::kernels::cuda
