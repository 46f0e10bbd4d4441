// Allocation of device and pinned memory, and queries about addresses.

#include "state.h"

#include <cstdlib>
#include <cstring>
#include <iterator>

using namespace levin::emulator;

namespace {

constexpr std::size_t kHostAlign = 256;

/// Returns the device whose allocation begins at p, or -1.
int owner_of(const Runtime& rt, const void* p) {
  const Place place = rt.place_of(p);
  return place.kind == Place::Kind::device && place.begin == p ? place.device : -1;
}

cudaError_t no_allocation(Runtime& rt, const char* call, const void* p) {
  return rt.refuse(cudaErrorInvalidValue, std::string(call) + ": no live allocation begins at " + text_of(p) +
                                              ". It was freed before, or is not the address that was given out.");
}

}  // namespace

namespace levin::emulator {

cudaError_t Runtime::allocate(Lock& lock, void** p, std::size_t bytes, int device, const char* call) {
  if (!p) return refuse(cudaErrorInvalidValue, std::string(call) + ": null instead of where the address goes");
  *p = nullptr;
  if (bytes == 0) return cudaSuccess;
  for (const bool again : {false, true}) {
    if (again) complete_device(lock, device);  // a queued cudaFreeAsync may free memory
    const Turn turn(*this, lock);
    open(1u << device, false);
    *p = devices[static_cast<std::size_t>(device)].arena->allocate(bytes);
    if (*p) return cudaSuccess;
  }
  const Arena& arena = *devices[static_cast<std::size_t>(device)].arena;
  return refuse(cudaErrorMemoryAllocation, std::string(call) + ": " + std::to_string(bytes) +
                                               " bytes asked of device " + std::to_string(device) + ", where " +
                                               std::to_string(arena.capacity() - arena.used()) + " of " +
                                               std::to_string(arena.capacity()) + " are free");
}

cudaError_t Runtime::release(int device, void* p, const char* call) {
  Arena& arena = *devices[static_cast<std::size_t>(device)].arena;
  const Allocation* a = arena.find(p);
  const std::string what = a ? text_of(*a, device) : "";
  const std::optional<bool> whole = arena.free(p);
  if (!whole) return no_allocation(*this, call, p);
  if (*whole) return cudaSuccess;
  const cudaError_t error =
      refuse(cudaErrorIllegalAddress, std::string(call) + ": something wrote outside of " + what + " at " + text_of(p));
  warn(report);
  return error;
}

}  // namespace levin::emulator

cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    const cudaError_t refused = rt.check_no_capture("cudaMalloc");
    return refused != cudaSuccess ? refused : rt.allocate(lock, p, bytes, this_thread().device, "cudaMalloc");
  });
}

cudaError_t cudaFree(void* p) {
  return call(Needs::nothing, [&](Runtime& rt, Lock& lock) {
    if (!p) return rt.health(this_thread().device);
    if (const cudaError_t refused = rt.check_no_capture("cudaFree"); refused != cudaSuccess) return refused;
    const int device = owner_of(rt, p);
    if (device < 0) return no_allocation(rt, "cudaFree", p);
    ++rt.host_waits;
    rt.complete_device(lock, device);
    const Runtime::Turn turn(rt, lock);
    rt.open(1u << device, false);
    const cudaError_t freed = rt.release(device, p, "cudaFree");
    return freed != cudaSuccess ? freed : rt.health(device);
  });
}

cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t stream) {
  return call(Needs::health, [&](Runtime& rt, Lock& lock) {
    const CUstream_st* s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaMallocAsync: no such stream");
    if (s->capture) return rt.refuse(cudaErrorNotSupported, "cudaMallocAsync: the emulator does not capture it");
    return rt.allocate(lock, p, bytes, s->device, "cudaMallocAsync");
  });
}

cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return call(Needs::nothing, [&](Runtime& rt, Lock& lock) {
    CUstream_st* s = rt.find(stream);
    if (!s) return rt.refuse(cudaErrorInvalidResourceHandle, "cudaFreeAsync: no such stream");
    if (!p) return rt.health(s->device);
    if (s->capture) return rt.refuse(cudaErrorNotSupported, "cudaFreeAsync: the emulator does not capture it");
    const int device = owner_of(rt, p);
    if (device < 0) return no_allocation(rt, "cudaFreeAsync", p);
    Work work;
    work.kind = Work::Kind::release;
    work.opens = 1u << device;
    work.name = "cudaFreeAsync";
    work.run = [&rt, device, p] {
      return rt.release(device, p, "cudaFreeAsync") == cudaSuccess ? std::string() : rt.report;
    };
    const cudaError_t queued = rt.submit(lock, *s, std::move(work));
    return queued != cudaSuccess ? queued : rt.health(s->device);
  });
}

cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!p) return cudaErrorInvalidValue;
    *p = nullptr;
    if (const cudaError_t refused = rt.check_no_capture("cudaHostAlloc"); refused != cudaSuccess) return refused;
    if (bytes == 0) return cudaSuccess;
    if (posix_memalign(p, kHostAlign, bytes) != 0) {
      *p = nullptr;
      return rt.refuse(cudaErrorMemoryAllocation, "cudaHostAlloc: the host has no " + std::to_string(bytes) + " bytes");
    }
    std::memset(*p, 0xFF, bytes);
    rt.host_blocks[static_cast<const char*>(*p)] = {bytes, true, this_thread().device};
    return cudaSuccess;
  });
}

cudaError_t cudaMallocHost(void** p, std::size_t bytes) { return cudaHostAlloc(p, bytes, cudaHostAllocDefault); }

cudaError_t cudaFreeHost(void* p) {
  return call(Needs::nothing, [&](Runtime& rt, Lock& lock) {
    if (!p) return cudaSuccess;
    if (const cudaError_t refused = rt.check_no_capture("cudaFreeHost"); refused != cudaSuccess) return refused;
    const auto it = rt.host_blocks.find(static_cast<const char*>(p));
    if (it == rt.host_blocks.end() || !it->second.owned) return no_allocation(rt, "cudaFreeHost", p);
    ++rt.host_waits;
    for (int d = 0; d < static_cast<int>(rt.devices.size()); ++d) rt.complete_device(lock, d);
    rt.host_blocks.erase(static_cast<const char*>(p));
    std::free(p);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!p || bytes == 0) return cudaErrorInvalidValue;
    const auto* const begin = static_cast<const char*>(p);
    const auto next = rt.host_blocks.lower_bound(begin);
    if (rt.place_of(p).kind != Place::Kind::pageable || (next != rt.host_blocks.end() && next->first < begin + bytes)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    rt.host_blocks[begin] = {bytes, false, this_thread().device};
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* p) {
  return call(Needs::nothing, [&](Runtime& rt, Lock& lock) {
    const auto it = rt.host_blocks.find(static_cast<const char*>(p));
    if (it == rt.host_blocks.end() || it->second.owned) return cudaErrorHostMemoryNotRegistered;
    ++rt.host_waits;
    for (int d = 0; d < static_cast<int>(rt.devices.size()); ++d) rt.complete_device(lock, d);
    rt.host_blocks.erase(static_cast<const char*>(p));
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!device || rt.place_of(host).kind != Place::Kind::pinned) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!free || !total) return cudaErrorInvalidValue;
    const Arena& arena = *rt.devices[static_cast<std::size_t>(this_thread().device)].arena;
    *total = arena.capacity();
    *free = arena.capacity() - arena.used();
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!attributes) return cudaErrorInvalidValue;
    void* const address = const_cast<void*>(p);
    const Place place = rt.place_of(p);
    switch (place.kind) {
      case Place::Kind::device:
        *attributes = {cudaMemoryTypeDevice, place.device, address, nullptr};
        break;
      case Place::Kind::pinned:
        *attributes = {cudaMemoryTypeHost, place.device, address, address};
        break;
      case Place::Kind::pageable:
      case Place::Kind::nowhere:
        *attributes = {cudaMemoryTypeUnregistered, -2, nullptr, address};
        break;
    }
    return cudaSuccess;
  });
}

// ---- memory pools: one per device, whose threshold is stored and has no effect

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!pool) return cudaErrorInvalidValue;
    if (device < 0 || device >= static_cast<int>(rt.devices.size())) return cudaErrorInvalidDevice;
    *pool = &rt.devices[static_cast<std::size_t>(device)].pool;
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return call(Needs::nothing, [&](Runtime&, Lock&) {
    if (!pool || !value || attr != cudaMemPoolAttrReleaseThreshold) return cudaErrorInvalidValue;
    pool->threshold = *static_cast<const std::uint64_t*>(value);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!pool || !value) return cudaErrorInvalidValue;
    const Arena& arena = *rt.devices[static_cast<std::size_t>(pool->device)].arena;
    *static_cast<std::uint64_t*>(value) = attr == cudaMemPoolAttrReleaseThreshold ? pool->threshold : arena.used();
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t) {
  return call(Needs::nothing, [&](Runtime& rt, Lock& lock) {
    if (!pool) return cudaErrorInvalidValue;
    rt.complete_device(lock, pool->device);
    return cudaSuccess;
  });
}
