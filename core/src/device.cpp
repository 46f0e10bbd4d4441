#include <levin/core/device.h>

#include "cpu_backend.h"

#include <fmt/format.h>

#include <atomic>
#include <charconv>
#include <vector>

namespace levin {

namespace {

constexpr std::string_view kTypeNames[kDeviceTypeCount] = {"cpu", "cuda", "custom0", "custom1"};

/// Returns the registered backend of a type. Backends are never destroyed, so that tensors of static duration can still
/// be freed at exit.
std::atomic<DeviceBackend*>& slot(DeviceType type) {
  static std::atomic<DeviceBackend*> slots[kDeviceTypeCount] = {&cpu_backend()};
  return slots[static_cast<int>(type)];
}

std::string known_devices() {
  std::vector<std::string_view> names;
  for (int i = 0; i < kDeviceTypeCount; ++i) {
    if (slot(static_cast<DeviceType>(i)).load()) names.push_back(kTypeNames[i]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string to_string(Device device) {
  const std::string_view name = kTypeNames[static_cast<int>(device.type)];
  return device == kCpu ? std::string(name) : fmt::format("{}:{}", name, static_cast<int>(device.index));
}

Device parse_device(std::string_view text) {
  const std::size_t colon = text.find(':');
  std::string_view name = text.substr(0, colon);
  if (name == "gpu") name = "cuda";
  for (int i = 0; i < kDeviceTypeCount; ++i) {
    if (name != kTypeNames[i]) continue;
    int index = 0;
    if (colon != std::string_view::npos) {
      const std::string_view digits = text.substr(colon + 1);
      const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
      if (status != std::errc{} || end != digits.data() + digits.size() || index < 0 || index > 127) break;
    }
    return {static_cast<DeviceType>(i), static_cast<std::int8_t>(index)};
  }
  throw DeviceError(fmt::format("[device] \"{}\" is not a device: write cpu, cuda (or gpu), or cuda:1.", text));
}

DeviceBackend& device_backend(DeviceType type) {
  if (type == DeviceType::cpu) return cpu_backend();
  if (DeviceBackend* backend = slot(type).load(std::memory_order_acquire)) return *backend;
  throw DeviceError(fmt::format("[device] {} is not in this build: it has {}. Use one of these, or a build with {}.",
                                kTypeNames[static_cast<int>(type)], known_devices(),
                                type == DeviceType::cuda ? "-DLEVIN_CUDA=ON" : "that backend registered"));
}

void register_device(DeviceType type, DeviceBackend& backend) {
  if (type == DeviceType::cpu) throw DeviceError("[device] the cpu's backend cannot be replaced.");
  slot(type).store(&backend, std::memory_order_release);
}

void require_device(Device device) {
  const DeviceBackend& backend = device_backend(device);
  const int count = backend.device_count();
  const std::string reason = backend.why_unavailable(device.index);
  if (!reason.empty()) throw DeviceError(reason);
  if (device.index >= 0 && device.index < count) return;
  throw DeviceError(fmt::format("[device] {}:{} does not exist: this machine has {} {} device{}, counted from 0.",
                                kTypeNames[static_cast<int>(device.type)], static_cast<int>(device.index), count,
                                kTypeNames[static_cast<int>(device.type)], count == 1 ? "" : "s"));
}

Stream current_stream(Device device) {
  if (device.type == DeviceType::cpu) return Stream(kCpu);
  return device_backend(device).current_stream(device.index);
}

}  // namespace levin
