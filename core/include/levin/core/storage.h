#pragma once
// A block of memory on a device, shared by all views of it.

#include <levin/core/device.h>
#include <levin/core/intrusive.h>

#include <functional>

namespace levin {

class Storage : public RefCounted, public Pooled<Storage> {
 public:
  /// Allocates `bytes` on `device`; throws OutOfMemory or DeviceError.
  Storage(std::size_t bytes, Device device);
  /// Borrows memory that `release` gives back (called once, when the last view is gone).
  Storage(void* data, std::size_t bytes, Device device, std::function<void()> release);
  ~Storage();

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  Device device() const { return device_; }

  /// Counts in-place edits, so that backward notices when a saved value was overwritten.
  std::uint32_t version() const { return version_; }
  void bump_version() { ++version_; }

  /// Storages alive in the process; tests use it to find leaks.
  static int64_t live_count();

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  Device device_;
  std::uint32_t version_ = 0;
  std::function<void()>* release_ = nullptr;
};

using StoragePtr = IntrusivePtr<Storage>;

}  // namespace levin
