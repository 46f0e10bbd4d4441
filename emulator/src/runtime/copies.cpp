// Copies and fills: checked when called, executed in stream order.

#include "state.h"

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

using namespace levin::emulator;

namespace {

using PlaceKind = Place::Kind;

/// A copy of `height` rows of `width` bytes.
struct Copy {
  char* dst = nullptr;
  std::size_t dpitch = 0;
  const char* src = nullptr;
  std::size_t spitch = 0, width = 0, height = 0;

  std::size_t dst_bytes() const { return (height - 1) * dpitch + width; }
  std::size_t src_bytes() const { return (height - 1) * spitch + width; }
  void run() const {
    if (width == dpitch && width == spitch) {
      std::memcpy(dst, src, width * height);
      return;
    }
    for (std::size_t y = 0; y < height; ++y) std::memcpy(dst + y * dpitch, src + y * spitch, width);
  }
};

bool is_host(PlaceKind k) { return k == PlaceKind::pageable || k == PlaceKind::pinned; }

const char* kind_name(PlaceKind k) {
  switch (k) {
    case PlaceKind::pageable:
      return "pageable host memory";
    case PlaceKind::pinned:
      return "pinned host memory";
    case PlaceKind::device:
      return "device memory";
    case PlaceKind::nowhere:
      return "device memory that is not allocated";
  }
  return "";
}

/// Checks that `bytes` from p lie in one allocation.
cudaError_t check_range(Runtime& rt, const char* call, const char* role, const Place& place, const void* p,
                        std::size_t bytes) {
  if (place.kind == PlaceKind::nowhere) {
    return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": the " + role + " " + text_of(p) +
                                                " lies in no live allocation of device " +
                                                std::to_string(place.device));
  }
  if (place.kind == PlaceKind::pageable) return cudaSuccess;
  const auto offset = static_cast<std::size_t>(static_cast<const char*>(p) - place.begin);
  if (bytes <= place.bytes - offset) return cudaSuccess;
  return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": the " + role + " has " +
                                              std::to_string(place.bytes - offset) + " bytes behind " +
                                              text_of(p) + ", and " + std::to_string(bytes) +
                                              " are copied");
}

cudaError_t check_kind(Runtime& rt, const char* call, cudaMemcpyKind kind, PlaceKind dst, PlaceKind src) {
  bool to_device = false, from_device = false;
  switch (kind) {
    case cudaMemcpyHostToHost:
      break;
    case cudaMemcpyHostToDevice:
      to_device = true;
      break;
    case cudaMemcpyDeviceToHost:
      from_device = true;
      break;
    case cudaMemcpyDeviceToDevice:
      to_device = from_device = true;
      break;
    case cudaMemcpyDefault:
      return cudaSuccess;
    default:
      return rt.refuse(cudaErrorInvalidMemcpyDirection, std::string(call) + ": an unknown direction");
  }
  // Pinned memory may be given as device memory, because devices map it.
  const bool fits_dst = dst == PlaceKind::pinned || to_device == (dst == PlaceKind::device);
  const bool fits_src = src == PlaceKind::pinned || from_device == (src == PlaceKind::device);
  if (fits_dst && fits_src) return cudaSuccess;
  return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": the direction says from " +
                                              (from_device ? "device" : "host") + " to " +
                                              (to_device ? "device" : "host") + ", but the source is " +
                                              kind_name(src) + " and the destination " + kind_name(dst));
}

cudaError_t check(Runtime& rt, const char* call, const Copy& c, cudaMemcpyKind kind, const Place& dst,
                  const Place& src) {
  if (c.dpitch < c.width || c.spitch < c.width) {
    return rt.refuse(cudaErrorInvalidPitchValue, std::string(call) + ": a row is wider than its pitch");
  }
  if (!c.dst || !c.src) return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": a null pointer");
  cudaError_t e = check_range(rt, call, "source", src, c.src, c.src_bytes());
  if (e == cudaSuccess) e = check_range(rt, call, "destination", dst, c.dst, c.dst_bytes());
  if (e == cudaSuccess) e = check_kind(rt, call, kind, dst.kind, src.kind);
  if (e == cudaSuccess && c.height == 1 && c.dst < c.src + c.width && c.src < c.dst + c.width) {
    e = rt.refuse(cudaErrorInvalidValue, std::string(call) + ": source and destination overlap");
  }
  return e;
}

std::uint32_t bit_of(const Place& p) { return p.kind == PlaceKind::device ? 1u << p.device : 0; }

/// Returns the work of the copy. With `snapshot` it copies the source's bytes as they are now.
std::function<std::string()> run_later(const Copy& c, bool snapshot) {
  if (!snapshot) {
    return [c] {
      c.run();
      return std::string();
    };
  }
  auto rows = std::make_shared<std::vector<char>>(c.width * c.height);
  Copy{rows->data(), c.width, c.src, c.spitch, c.width, c.height}.run();
  Copy later = c;
  later.src = rows->data();
  later.spitch = c.width;
  return [later, rows] {
    later.run();
    return std::string();
  };
}

/// Whether the caller waits.
enum class Waits { as_needed, until_done };

cudaError_t copy(const char* name, const Copy& c, cudaMemcpyKind kind, cudaStream_t handle, Waits waits) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const stream = rt.find(handle);
    if (!stream) return rt.refuse(cudaErrorInvalidResourceHandle, std::string(name) + ": no such stream");
    if (c.width == 0 || c.height == 0) return cudaSuccess;
    const Place dst = rt.place_of(c.dst), src = rt.place_of(c.src);
    cudaError_t e = check(rt, name, c, kind, dst, src);
    if (e != cudaSuccess) return e;
    const bool pageable = dst.kind == PlaceKind::pageable || src.kind == PlaceKind::pageable;
    if (waits == Waits::until_done) e = rt.check_no_capture(name);
    if (e == cudaSuccess && pageable) e = rt.check_not_captured(*stream, name);
    if (e != cudaSuccess) return e;
    // The driver stages pageable sources and waits where it cannot.
    const bool on_devices = !is_host(dst.kind) && !is_host(src.kind);
    const bool wait = (waits == Waits::until_done && !on_devices) || dst.kind == PlaceKind::pageable ||
                      (is_host(dst.kind) && is_host(src.kind) && !stream->capture);
    Work work;
    work.kind = Work::Kind::copy;
    work.name = name;
    work.opens = bit_of(dst) | bit_of(src);
    if (dst.kind == PlaceKind::device) work.touches.push_back({c.dst, c.dst_bytes()});
    if (src.kind == PlaceKind::device) work.touches.push_back({c.src, c.src_bytes()});
    work.run = run_later(c, src.kind == PlaceKind::pageable && !wait);
    e = rt.submit(lock, *stream, std::move(work));
    if (e != cudaSuccess || !wait) return e;
    const int device = stream->device;
    rt.host_wait(lock, {stream->last});
    return rt.health(device);
  });
}

cudaError_t fill(const char* name, void* p, int value, std::size_t bytes, cudaStream_t handle, Waits waits) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    CUstream_st* const stream = rt.find(handle);
    if (!stream) return rt.refuse(cudaErrorInvalidResourceHandle, std::string(name) + ": no such stream");
    if (bytes == 0) return cudaSuccess;
    const Place place = rt.place_of(p);
    if (place.kind == PlaceKind::pageable) {
      return rt.refuse(cudaErrorInvalidValue,
                       std::string(name) + ": " + text_of(p) + " is pageable host memory");
    }
    cudaError_t e = check_range(rt, name, "destination", place, p, bytes);
    if (e == cudaSuccess && waits == Waits::until_done) e = rt.check_no_capture(name);
    if (e != cudaSuccess) return e;
    Work work;
    work.kind = Work::Kind::fill;
    work.name = name;
    work.opens = bit_of(place);
    if (place.kind == PlaceKind::device) work.touches.push_back({p, bytes});
    work.run = [p, value, bytes] {
      std::memset(p, value, bytes);
      return std::string();
    };
    e = rt.submit(lock, *stream, std::move(work));
    if (e != cudaSuccess || waits == Waits::as_needed || place.kind == PlaceKind::device) return e;
    const int device = stream->device;
    rt.host_wait(lock, {stream->last});
    return rt.health(device);
  });
}

Copy one_row(void* dst, const void* src, std::size_t bytes) {
  return {static_cast<char*>(dst), bytes, static_cast<const char*>(src), bytes, bytes, 1};
}

Copy rows(void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width, std::size_t height) {
  return {static_cast<char*>(dst), dpitch, static_cast<const char*>(src), spitch, width, height};
}

cudaError_t check_peers(const char* name, const void* dst, int dst_device, const void* src, int src_device) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    const auto lies_on = [&](const void* p, int device) {
      const Place place = rt.place_of(p);
      return place.kind == PlaceKind::device && place.device == device;
    };
    const int count = static_cast<int>(rt.devices.size());
    if (dst_device < 0 || dst_device >= count || src_device < 0 || src_device >= count) return cudaErrorInvalidDevice;
    if (lies_on(dst, dst_device) && lies_on(src, src_device)) return cudaSuccess;
    return rt.refuse(cudaErrorInvalidValue, std::string(name) + ": " + text_of(dst) +
                                                " is not on device " + std::to_string(dst_device) + ", or " +
                                                text_of(src) + " not on device " +
                                                std::to_string(src_device));
  });
}

}  // namespace

cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind) {
  return copy("cudaMemcpy", one_row(dst, src, bytes), kind, cudaStreamLegacy, Waits::until_done);
}

cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpyAsync", one_row(dst, src, bytes), kind, stream, Waits::as_needed);
}

cudaError_t cudaMemcpy2D(void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind) {
  return copy("cudaMemcpy2D", rows(dst, dpitch, src, spitch, width, height), kind, cudaStreamLegacy, Waits::until_done);
}

cudaError_t cudaMemcpy2DAsync(void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy("cudaMemcpy2DAsync", rows(dst, dpitch, src, spitch, width, height), kind, stream, Waits::as_needed);
}

cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, std::size_t bytes,
                                cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  const cudaError_t e = check_peers("cudaMemcpyPeerAsync", dst, dstDevice, src, srcDevice);
  if (e != cudaSuccess) return e;
  return copy("cudaMemcpyPeerAsync", one_row(dst, src, bytes), cudaMemcpyDeviceToDevice, stream, Waits::as_needed);
}

/// Ordered with all work of both devices.
cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, std::size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  cudaError_t e = check_peers("cudaMemcpyPeer", dst, dstDevice, src, srcDevice);
  if (e != cudaSuccess) return e;
  const auto finish = [&] {
    return call(Needs::health, [&](Runtime& rt, Lock& lock) {
      const cudaError_t refused = rt.check_no_capture("cudaMemcpyPeer");
      if (refused != cudaSuccess) return refused;
      ++rt.host_waits;
      for (const int device : {dstDevice, srcDevice, this_thread().device}) rt.complete_device(lock, device);
      return rt.health(this_thread().device);
    });
  };
  e = finish();
  if (e == cudaSuccess) {
    e = copy("cudaMemcpyPeer", one_row(dst, src, bytes), cudaMemcpyDeviceToDevice, cudaStreamLegacy, Waits::until_done);
  }
  return e == cudaSuccess ? finish() : e;
}

cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  return fill("cudaMemset", p, value, bytes, cudaStreamLegacy, Waits::until_done);
}

cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream) {
  return fill("cudaMemsetAsync", p, value, bytes, stream, Waits::as_needed);
}
