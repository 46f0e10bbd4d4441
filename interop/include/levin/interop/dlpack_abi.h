#pragma once
// The structures of DLPack 1 (dmlc.github.io/dlpack), for programs without dlpack.h. Both headers may be included, in
// either order: the first one declares the structures. An older dlpack.h lacks the versioned tensor, which then comes
// from here.

#include <cstdint>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

enum DLDeviceType : std::int32_t {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,  ///< page-locked memory of the host
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
};

struct DLDevice {
  DLDeviceType device_type;
  std::int32_t device_id;
};

enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

struct DLDataType {
  std::uint8_t code;  ///< DLDataTypeCode
  std::uint8_t bits;  ///< of one lane
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;    ///< (ndim)
  std::int64_t* strides;  ///< (ndim), in elements; null for a row-major tensor
  std::uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);  ///< called once by the consumer; may be null
};
#endif

#ifndef DLPACK_MAJOR_VERSION
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

struct DLPackVersion {
  std::uint32_t major, minor;
};

struct DLManagedTensorVersioned {
  DLPackVersion version;  ///< other fields mean the same in every minor version
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};
#endif
