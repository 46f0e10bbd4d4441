#include <levin/core/capture/host_capture.h>
#include <levin/core/capture/recording.h>
#include <levin/core/error.h>

#include <fmt/format.h>

#include <atomic>

namespace levin {

namespace {

using Find = Recording* (*)(const Stream&);

std::atomic<Find>& finder(DeviceType type) {
  static constinit std::atomic<Find> finders[kDeviceTypeCount] = {};
  return finders[static_cast<int>(type)];
}

}  // namespace

Recording* recording(const Stream& stream) {
  const Find find = finder(stream.device().type).load(std::memory_order_acquire);
  return find ? find(stream) : nullptr;
}

void register_recordings(DeviceType type, Recording* (*find)(const Stream&)) {
  finder(type).store(find, std::memory_order_release);
}

void detail::refuse_captured(const char* op, const char* what) {
  throw StateError(fmt::format("[{}] a captured step computes only when it is replayed, so {}.", op, what));
}

}  // namespace levin
