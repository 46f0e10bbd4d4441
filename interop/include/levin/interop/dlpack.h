#pragma once
// DLPack: tensors of other libraries in the same process, such as NumPy and PyTorch, share their memory with Levin's.
// The structures are declared by dlpack_abi.h, or by DLPack's own dlpack.h.

#include <levin/core/tensor.h>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace levin::interop {

/// Arguments of to_dlpack_versioned.
struct ToDlpackOptions {
  bool read_only = false;  ///< asks the consumer not to write; only DLManagedTensorVersioned can say so
  bool copy = false;       ///< shares a copy of the values
};

/// Returns a handle to the tensor's memory, which lives until the consumer has called the handle's deleter. In Python
/// it is the content of a capsule named "dltensor". Waits for the device's work. Throws ValueError for a tensor that
/// requires grad (share x.detach()), and DeviceError for one that is neither on the CPU nor on CUDA.
DLManagedTensor* to_dlpack(const Tensor& tensor);
/// The same for DLPack 1: the content of a capsule named "dltensor_versioned".
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, const ToDlpackOptions& options = {});

/// Arguments of from_dlpack.
struct FromDlpackOptions {
  /// The device of the result; by default the memory stays where it is.
  std::optional<Device> device{};
  /// True copies always, false never: where a copy is needed, it throws ValueError. By default the values are copied if
  /// Levin cannot share them: read-only ones, negative strides, addresses that are not aligned, and another device.
  std::optional<bool> copy{};
};

/// Returns a tensor on the memory of another library and takes over the handle: its deleter is called once, with the
/// last tensor on this memory, or at once if the values were copied. If it throws, the handle still belongs to the
/// caller, who calls the deleter. Throws ValueError for a handle of another major version or one whose fields
/// contradict each other, DTypeError for types that Levin lacks, DeviceError for other devices, ShapeError for more
/// than 8 dimensions.
Tensor from_dlpack(DLManagedTensor* handle, const FromDlpackOptions& options = {});
Tensor from_dlpack(DLManagedTensorVersioned* handle, const FromDlpackOptions& options = {});

}  // namespace levin::interop
