#pragma once
// The structures of DLPack 1 (dmlc.github.io/dlpack), for programs without dlpack.h. Both headers may be included, in
// either order: the first one declares the structures. An older dlpack.h lacks the versioned tensor, which then comes
// from here.

#include <cstdint>

#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

/// Kinds of devices.
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

/// Where a tensor's memory is.
struct DLDevice {
  DLDeviceType device_type;  ///< kind of the device
  std::int32_t device_id;    ///< number of the device of that type; 0 for the host
};

/// Kinds of elements.
enum DLDataTypeCode {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLOpaqueHandle = 3,
  kDLBfloat = 4,
  kDLComplex = 5,
  kDLBool = 6,
};

/// Type of the elements.
struct DLDataType {
  std::uint8_t code;    ///< DLDataTypeCode
  std::uint8_t bits;    ///< of one lane
  std::uint16_t lanes;  ///< numbers in an element; 1 except for vector types
};

/// A tensor that does not own its memory.
struct DLTensor {
  void* data;             ///< start of the memory, byte_offset bytes before the first element
  DLDevice device;        ///< where data points to
  std::int32_t ndim;      ///< number of axes
  DLDataType dtype;       ///< of the elements
  std::int64_t* shape;    ///< (ndim)
  std::int64_t* strides;  ///< (ndim), in elements; null for a row-major tensor
  std::uint64_t byte_offset;  ///< of the first element from data
};

/// A tensor that its producer lends until the deleter is called.
struct DLManagedTensor {
  DLTensor dl_tensor;                      ///< the tensor
  void* manager_ctx;                       ///< the producer's own
  void (*deleter)(DLManagedTensor* self);  ///< called once by the consumer; may be null
};
#endif

#ifndef DLPACK_MAJOR_VERSION
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

/// Version of the structures: another major one has other fields.
struct DLPackVersion {
  std::uint32_t major, minor;  ///< 1 and 0 here
};

/// The lent tensor of DLPack 1.
struct DLManagedTensorVersioned {
  DLPackVersion version;                            ///< other fields mean the same in every minor version
  void* manager_ctx;                                ///< the producer's own
  void (*deleter)(DLManagedTensorVersioned* self);  ///< called once by the consumer; may be null
  std::uint64_t flags;                              ///< DLPACK_FLAG_BITMASK_ bits
  DLTensor dl_tensor;                               ///< the tensor
};
#endif
