#pragma once
// Memory of tensors: blocks that views share, and the objects to which a Tensor is a handle.

#include <levin/core/device.h>
#include <levin/core/intrusive.h>
#include <levin/core/owned_ptr.h>
#include <levin/core/shape.h>

#include <functional>
#include <string>

namespace levin {

/// A block of memory of one device, owned or borrowed. Tensors share it by reference counting, and it is freed with the
/// last of them.
class Storage : public RefCounted, public Pooled<Storage> {
 public:
  /// Allocates `bytes` on `device`; throws OutOfMemory or DeviceError.
  Storage(std::size_t bytes, Device device);
  /// Borrows memory. `release`, unless it is empty, is called once, when the last view is destroyed.
  Storage(void* data, std::size_t bytes, Device device, std::function<void()> release);
  ~Storage();

  /// Returns the address on the storage's device, the size in bytes, and the device.
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// True for memory that something else owns, which sees what is written there.
  bool is_borrowed() const { return release_ != nullptr; }

  /// Returns the number of in-place modifications, by which backward detects that a saved tensor was overwritten.
  std::uint32_t version() const { return version_; }
  /// Counts one more modification.
  void bump_version() { ++version_; }

  /// Returns the number of live storages in the process; tests use it to find leaks.
  static int64_t live_count();

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  std::uint32_t version_ = 0;
  std::function<void()>* release_ = nullptr;
};

/// A share of a storage.
using StoragePtr = IntrusivePtr<Storage>;

/// Base of the data that autograd attaches to a tensor; its contents are private to that module.
class AutogradData {
 public:
  virtual ~AutogradData() = default;
  /// Returns the text that printing appends: "requires_grad=True", "grad_fn=<mul>", or nothing.
  virtual std::string describe() const { return {}; }
};

namespace detail {
/// Set by autograd's inference_mode; defined here because every new tensor reads it.
inline constinit thread_local bool inference_mode_on = false;
}  // namespace detail

/// Part of a storage with sizes, strides and a type, and its place in the gradient graph.
class TensorImpl : public RefCounted, public Pooled<TensorImpl> {
 public:
  /// Sets the fields of these names; the device is that of the storage. Whether the elements lie inside the storage is
  /// not checked.
  TensorImpl(StoragePtr storage_, int64_t offset_, const Shape& sizes_, const Shape& strides_, DType dtype_)
      : storage(std::move(storage_)), offset(offset_), numel(sizes_.numel()), sizes(sizes_), strides(strides_),
        dtype(dtype_), device(storage->device()), contiguous(levin::is_contiguous(sizes_, strides_)) {}

  StoragePtr storage;      ///< memory, which views share
  int64_t offset;          ///< offset of the first element, in elements
  int64_t numel;           ///< number of elements
  Shape sizes, strides;    ///< one for each axis; strides are in elements
  DType dtype;             ///< element type
  Device device;           ///< device of the storage
  bool contiguous;         ///< the strides are those of row-major order
  bool inference = detail::inference_mode_on;  ///< created under inference_mode: may not be saved for backward
  OwnedPtr<AutogradData> autograd;             ///< null unless the tensor has to do with gradients
};

/// A share of a tensor; Tensor wraps it.
using TensorImplPtr = IntrusivePtr<TensorImpl>;

}  // namespace levin
