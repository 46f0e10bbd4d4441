// Sizes, offsets and numbers of the structures of DLPack, by the header that the including file has chosen.
#pragma once

#include <cstddef>
#include <vector>

namespace {

std::vector<std::size_t> dlpack_layout() {
  return {sizeof(DLDevice), offsetof(DLDevice, device_type), offsetof(DLDevice, device_id),
          sizeof(DLDataType), offsetof(DLDataType, code), offsetof(DLDataType, bits), offsetof(DLDataType, lanes),
          sizeof(DLTensor), offsetof(DLTensor, data), offsetof(DLTensor, device), offsetof(DLTensor, ndim),
          offsetof(DLTensor, dtype), offsetof(DLTensor, shape), offsetof(DLTensor, strides),
          offsetof(DLTensor, byte_offset), sizeof(DLManagedTensor), offsetof(DLManagedTensor, dl_tensor),
          offsetof(DLManagedTensor, manager_ctx), offsetof(DLManagedTensor, deleter),
          kDLCPU, kDLCUDA, kDLCUDAHost, kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI, kDLROCM, kDLROCMHost, kDLExtDev,
          kDLCUDAManaged, kDLInt, kDLUInt, kDLFloat, kDLOpaqueHandle, kDLBfloat, kDLComplex};
}

}  // namespace
