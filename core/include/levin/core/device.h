#pragma once
// Devices, which hold tensors and allocate their memory. A device provides resources only; the operation tables of
// `kernels` list what it can compute.

#include <levin/core/dtype.h>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <string>

namespace levin {

/// The two custom types are reserved for other accelerators, which register at run time.
enum class DeviceType : std::uint8_t { cpu, cuda, custom0, custom1 };
inline constexpr int kDeviceTypeCount = 4;  ///< number of device types

/// A place for tensors: the CPU, or one device of another type. Naming a device does not require that it exists.
struct Device {
  DeviceType type = DeviceType::cpu;
  std::int8_t index = 0;  ///< number among the devices of this type, from 0; 0 for the CPU
  friend constexpr bool operator==(Device, Device) = default;
};

inline constexpr Device kCpu{};  ///< the CPU
/// Returns the CPU.
constexpr Device cpu() { return kCpu; }
/// Returns a CUDA device by its number, 0 to 127.
constexpr Device cuda(int index = 0) { return {DeviceType::cuda, static_cast<std::int8_t>(index)}; }

/// Returns "cpu", "cuda:0", ...
std::string to_string(Device device);
std::ostream& operator<<(std::ostream& out, Device device);
/// Parses "cpu", "cuda" (or "gpu"), "cuda:1"; throws DeviceError for another text. The device need not exist.
Device parse_device(std::string_view text);

/// A queue of work on one device. The CPU has a single stream, which runs work immediately.
class Stream {
 public:
  /// Refers to a backend's stream, which the object does not own.
  constexpr explicit Stream(Device device, void* handle = nullptr) : device_(device), handle_(handle) {}
  /// Returns the device on which its work runs.
  constexpr Device device() const { return device_; }
  constexpr void* handle() const { return handle_; }  ///< the backend's stream handle, null for its default

 private:
  Device device_;
  void* handle_;
};

/// Counters of a device's caching allocator, in bytes unless stated otherwise.
struct MemoryStats {
  std::size_t allocated = 0;        ///< held by live storages
  std::size_t peak_allocated = 0;   ///< highest `allocated` since reset_peak
  std::size_t reserved = 0;         ///< taken from the system, in use or cached
  std::size_t live_blocks = 0;      ///< number of live storages' blocks
  std::size_t system_allocations = 0;  ///< number of allocations from the system
};

/// The services of a device type besides kernels, which may be called from any thread. Implementations are registered
/// once and are never destroyed.
class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  virtual std::string name() const = 0;       ///< "cpu", "cuda"
  virtual int device_count() const = 0;       ///< number of devices of this type; 0 when there is none
  /// Returns one sentence that says why device number `index` cannot be used, or an empty string when the backend has
  /// nothing to add.
  virtual std::string why_unavailable(int /*index*/) const { return {}; }
  /// Returns uninitialized memory of the stream's device, 64-byte aligned; throws OutOfMemory.
  virtual void* allocate(std::size_t bytes, Stream& stream) = 0;
  /// Frees memory of allocate(); `bytes` is the number passed to it.
  virtual void free(void* p, std::size_t bytes, int device_index) noexcept = 0;
  /// Copies bytes between its devices, or to or from the CPU, in the stream's order. A copy to the CPU returns when the
  /// bytes have arrived; a copy from the CPU's pageable memory returns when they have been read. Throws DeviceError for
  /// other pairs of devices.
  virtual void copy(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes,
                    Stream& stream) = 0;
  /// Sets each byte to the lowest eight bits of `value`, in the stream's order.
  virtual void fill_bytes(void* p, int value, std::size_t bytes, Stream& stream) = 0;
  /// Returns the stream on which the calling thread's operations for the device are queued.
  virtual Stream current_stream(int device_index) = 0;
  /// Waits for all work of the device.
  virtual void synchronize(int device_index) = 0;
  /// Returns the counters of the device's allocator.
  virtual MemoryStats memory_stats(int device_index) const = 0;
  /// Returns cached blocks to the system.
  virtual void empty_cache(int device_index) = 0;
  /// Returns one human-readable line about the device.
  virtual std::string properties(int device_index) const = 0;
};

/// Returns the backend of a type; throws DeviceError that lists the devices of this build.
DeviceBackend& device_backend(DeviceType type);
inline DeviceBackend& device_backend(Device device) { return device_backend(device.type); }
/// Registers a backend (cuda at start-up of a CUDA build, custom types by their authors), which must live as long as
/// the process. Throws DeviceError for the CPU, whose backend cannot be replaced.
void register_device(DeviceType type, DeviceBackend& backend);
/// Throws DeviceError unless the device exists on this machine.
void require_device(Device device);

/// Returns the stream on which this thread's operations for `device` are queued.
Stream current_stream(Device device);

}  // namespace levin
