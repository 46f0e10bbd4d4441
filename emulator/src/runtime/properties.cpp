// Queries of devices: their number, properties, limits and peers.

#include "state.h"

#include <levin/emulator/execution.h>

#include <cstdio>
#include <cstring>

using namespace levin::emulator;

namespace {

bool exists(const Runtime& rt, int device) { return device >= 0 && device < static_cast<int>(rt.devices.size()); }

cudaError_t no_such_device(Runtime& rt, const char* call, int device) {
  return rt.refuse(cudaErrorInvalidDevice, std::string(call) + ": device " + std::to_string(device) + " of " +
                                               std::to_string(rt.devices.size()));
}

cudaDeviceProp properties_of(const Runtime& rt, int device) {
  cudaDeviceProp p{};
  std::strcpy(p.name, "Levin emulator");
  p.uuid.bytes[15] = static_cast<char>(device);
  p.totalGlobalMem = rt.devices[static_cast<std::size_t>(device)].arena->capacity();
  const SharedLimits shared = shared_limits(rt.major, rt.minor);
  p.sharedMemPerBlock = kUsualSharedBytes;
  p.sharedMemPerBlockOptin = shared.block;
  p.sharedMemPerMultiprocessor = shared.multiprocessor;
  p.reservedSharedMemPerBlock = shared.reserved;
  p.regsPerBlock = p.regsPerMultiprocessor = 65536;
  p.warpSize = 32;
  p.memPitch = 0x7fffffff;
  p.maxThreadsPerBlock = p.maxThreadsDim[0] = p.maxThreadsDim[1] = 1024;
  p.maxThreadsDim[2] = 64;
  p.maxGridSize[0] = 0x7fffffff;
  p.maxGridSize[1] = p.maxGridSize[2] = 65535;
  p.totalConstMem = 64 * 1024;
  p.major = rt.major;
  p.minor = rt.minor;
  p.multiProcessorCount = 4;
  p.canMapHostMemory = p.concurrentKernels = p.unifiedAddressing = p.streamPrioritiesSupported = 1;
  p.cooperativeLaunch = p.hostRegisterSupported = p.memoryPoolsSupported = 1;
  p.clusterLaunch = rt.major >= 9;
  p.pciBusID = device + 1;
  p.asyncEngineCount = 2;
  p.memoryBusWidth = 1024;
  p.l2CacheSize = 4 << 20;
  p.persistingL2CacheMaxSize = 1 << 20;
  p.maxThreadsPerMultiProcessor = 2048;
  p.maxBlocksPerMultiProcessor = 32;
  return p;
}

/// Returns -1 for an attribute that the emulator does not know.
int attribute_of(const cudaDeviceProp& p, cudaDeviceAttr attr) {
  switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock:
      return p.maxThreadsPerBlock;
    case cudaDevAttrMaxBlockDimX:
      return p.maxThreadsDim[0];
    case cudaDevAttrMaxBlockDimY:
      return p.maxThreadsDim[1];
    case cudaDevAttrMaxBlockDimZ:
      return p.maxThreadsDim[2];
    case cudaDevAttrMaxGridDimX:
      return p.maxGridSize[0];
    case cudaDevAttrMaxGridDimY:
      return p.maxGridSize[1];
    case cudaDevAttrMaxGridDimZ:
      return p.maxGridSize[2];
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(p.sharedMemPerBlock);
    case cudaDevAttrTotalConstantMemory:
      return static_cast<int>(p.totalConstMem);
    case cudaDevAttrWarpSize:
      return p.warpSize;
    case cudaDevAttrMaxRegistersPerBlock:
      return p.regsPerBlock;
    case cudaDevAttrClockRate:
      return 1000000;
    case cudaDevAttrMultiProcessorCount:
      return p.multiProcessorCount;
    case cudaDevAttrIntegrated:
      return p.integrated;
    case cudaDevAttrCanMapHostMemory:
      return p.canMapHostMemory;
    case cudaDevAttrConcurrentKernels:
      return p.concurrentKernels;
    case cudaDevAttrPciBusId:
      return p.pciBusID;
    case cudaDevAttrPciDeviceId:
      return p.pciDeviceID;
    case cudaDevAttrMemoryClockRate:
      return 1000000;
    case cudaDevAttrGlobalMemoryBusWidth:
      return p.memoryBusWidth;
    case cudaDevAttrL2CacheSize:
      return p.l2CacheSize;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return p.maxThreadsPerMultiProcessor;
    case cudaDevAttrAsyncEngineCount:
      return p.asyncEngineCount;
    case cudaDevAttrUnifiedAddressing:
      return p.unifiedAddressing;
    case cudaDevAttrComputeCapabilityMajor:
      return p.major;
    case cudaDevAttrComputeCapabilityMinor:
      return p.minor;
    case cudaDevAttrStreamPrioritiesSupported:
      return p.streamPrioritiesSupported;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(p.sharedMemPerMultiprocessor);
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return p.regsPerMultiprocessor;
    case cudaDevAttrManagedMemory:
      return p.managedMemory;
    case cudaDevAttrPageableMemoryAccess:
      return p.pageableMemoryAccess;
    case cudaDevAttrCooperativeLaunch:
      return p.cooperativeLaunch;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(p.sharedMemPerBlockOptin);
    case cudaDevAttrHostRegisterSupported:
      return p.hostRegisterSupported;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return p.maxBlocksPerMultiProcessor;
    case cudaDevAttrMaxPersistingL2CacheSize:
      return p.persistingL2CacheMaxSize;
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(p.reservedSharedMemPerBlock);
    case cudaDevAttrMemoryPoolsSupported:
      return p.memoryPoolsSupported;
    case cudaDevAttrClusterLaunch:
      return p.clusterLaunch;
  }
  return -1;
}

}  // namespace

/// From the CUDA C++ Programming Guide, technical specifications by compute capability.
SharedLimits levin::emulator::shared_limits(int major, int minor) {
  const bool small = (major == 8 && (minor == 6 || minor == 9)) || major == 12;
  const std::size_t kib = small ? 100 : major == 8 ? 164 : 228;
  return {(kib - 1) * 1024, kib * 1024, 1024};
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (!count) return note(cudaErrorInvalidValue);
  Runtime& rt = runtime();
  const Lock lock(rt.mutex);
  *count = static_cast<int>(rt.devices.size());
  return *count > 0 ? cudaSuccess : note(rt.refuse(cudaErrorNoDevice, "there is no emulated device"));
}

cudaError_t cudaGetDevice(int* device) {
  return call(Needs::nothing, [&](Runtime&, Lock&) {
    if (!device) return cudaErrorInvalidValue;
    *device = this_thread().device;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!exists(rt, device)) return no_such_device(rt, "cudaSetDevice", device);
    this_thread().device = device;
    return rt.devices[static_cast<std::size_t>(device)].error;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return call(Needs::nothing, [](Runtime&, Lock&) { return cudaSuccess; });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!prop) return cudaErrorInvalidValue;
    if (!exists(rt, device)) return no_such_device(rt, "cudaGetDeviceProperties", device);
    *prop = properties_of(rt, device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!value) return cudaErrorInvalidValue;
    if (!exists(rt, device)) return no_such_device(rt, "cudaDeviceGetAttribute", device);
    const int found = attribute_of(properties_of(rt, device), attr);
    if (found < 0) {
      return rt.refuse(cudaErrorInvalidValue, "cudaDeviceGetAttribute: the emulator does not know attribute " +
                                                  std::to_string(static_cast<int>(attr)));
    }
    *value = found;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!pciBusId || len < 13) return cudaErrorInvalidValue;
    if (!exists(rt, device)) return no_such_device(rt, "cudaDeviceGetPCIBusId", device);
    std::snprintf(pciBusId, static_cast<std::size_t>(len), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetLimit(cudaLimit, std::size_t) {
  return call(Needs::health, [](Runtime&, Lock&) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority) {
  return call(Needs::nothing, [&](Runtime&, Lock&) {
    if (leastPriority) *leastPriority = 0;
    if (greatestPriority) *greatestPriority = -5;
    return cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (!version) return note(cudaErrorInvalidValue);
  *version = 13000;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call(Needs::nothing, [&](Runtime& rt, Lock&) {
    if (!can) return cudaErrorInvalidValue;
    if (!exists(rt, device) || !exists(rt, peer)) {
      return no_such_device(rt, "cudaDeviceCanAccessPeer", exists(rt, device) ? peer : device);
    }
    *can = device != peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!exists(rt, peer) || peer == this_thread().device) {
      return no_such_device(rt, "cudaDeviceEnablePeerAccess", peer);
    }
    std::uint32_t& peers = rt.devices[static_cast<std::size_t>(this_thread().device)].peers;
    if (peers >> peer & 1) return cudaErrorPeerAccessAlreadyEnabled;
    peers |= 1u << peer;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call(Needs::health, [&](Runtime& rt, Lock&) {
    if (!exists(rt, peer)) return no_such_device(rt, "cudaDeviceDisablePeerAccess", peer);
    std::uint32_t& peers = rt.devices[static_cast<std::size_t>(this_thread().device)].peers;
    if (!(peers >> peer & 1)) return cudaErrorPeerAccessNotEnabled;
    peers &= ~(1u << peer);
    return cudaSuccess;
  });
}
