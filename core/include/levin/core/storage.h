#pragma once
// A block of memory on a device, shared by all views of it.

#include <levin/core/device.h>
#include <levin/core/intrusive.h>

#include <functional>

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

}  // namespace levin
