#pragma once
// The functions of the CUDA runtime that the emulator implements, with CUDA 13's names and meaning. Work on streams is
// queued and runs when something waits for it. devices.h has the emulator's own controls.

#include <levin/emulator/runtime_types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

// ---- errors
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

// ---- devices
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaSetDeviceFlags(unsigned flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceGetPCIBusId(char* pciBusId, int len, int device);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceGetStreamPriorityRange(int* leastPriority, int* greatestPriority);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);

// ---- memory
cudaError_t cudaMalloc(void** p, std::size_t bytes);
cudaError_t cudaFree(void* p);
cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t stream);
cudaError_t cudaFreeAsync(void* p, cudaStream_t stream);
cudaError_t cudaMallocHost(void** p, std::size_t bytes);
cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned flags);
cudaError_t cudaFreeHost(void* p);
cudaError_t cudaHostRegister(void* p, std::size_t bytes, unsigned flags);
cudaError_t cudaHostUnregister(void* p);
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p);

template <class T>
cudaError_t cudaMalloc(T** p, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(p), bytes);
}
template <class T>
cudaError_t cudaMallocAsync(T** p, std::size_t bytes, cudaStream_t stream) {
  return cudaMallocAsync(reinterpret_cast<void**>(p), bytes, stream);
}
template <class T>
cudaError_t cudaMallocHost(T** p, std::size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(p), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** p, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(p), bytes, flags);
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device);
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value);
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void* value);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t keep);

// ---- copies
cudaError_t cudaMemcpy(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* dst, const void* src, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemcpy2D(void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width,
                         std::size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DAsync(void* dst, std::size_t dpitch, const void* src, std::size_t spitch, std::size_t width,
                              std::size_t height, cudaMemcpyKind kind, cudaStream_t stream = nullptr);
cudaError_t cudaMemcpyPeer(void* dst, int dstDevice, const void* src, int srcDevice, std::size_t bytes);
cudaError_t cudaMemcpyPeerAsync(void* dst, int dstDevice, const void* src, int srcDevice, std::size_t bytes,
                                cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* p, int value, std::size_t bytes);
cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t stream = nullptr);

// ---- streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void* userData);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// ---- graphs
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags = 0);
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type);

// ---- kernels
namespace levin::emulator {
/// Calls a kernel for one thread with arguments that lie in one block of memory.
using CallKernel = void (*)(const void* function, const std::byte* arguments);
/// The alignment of the arguments' block; a tensor map needs it.
inline constexpr std::size_t kArgumentAlignment = 64;

/// Checks the launch, copies the arguments and queues it. `function` is the kernel's address, which `call` receives.
cudaError_t queue_kernel(const cudaLaunchConfig_t* config, const void* function, CallKernel call,
                         const std::byte* arguments, std::size_t bytes);

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attr, int value);
cudaError_t function_attributes(cudaFuncAttributes* attributes, const void* function);
cudaError_t blocks_a_multiprocessor(int* blocks, const void* function, int threads, std::size_t shared);
cudaError_t active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config);

template <class F>
const void* address_of(F* function) {
  if constexpr (std::is_function_v<F>) {
    return reinterpret_cast<const void*>(function);
  } else {
    return function;
  }
}

/// The offsets of arguments of these types in one block of memory; the last entry is its size.
template <class... P>
inline constexpr auto kArgumentOffsets = [] {
  constexpr std::array<std::size_t, sizeof...(P) + 1> sizes{sizeof(P)..., 0}, alignments{alignof(P)..., 1};
  std::array<std::size_t, sizeof...(P) + 1> offsets{};
  std::size_t end = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    offsets[i] = (end + alignments[i] - 1) / alignments[i] * alignments[i];
    end = offsets[i] + sizes[i];
  }
  return offsets;
}();

/// Queues a launch with these arguments. One instance serves all kernels with the same parameters, and needs neither
/// std::function nor std::tuple, because the tests compile hundreds of launches.
template <class... P, std::size_t... I>
cudaError_t queue_call(const cudaLaunchConfig_t* config, const void* function, std::index_sequence<I...>,
                       P... arguments) {
  alignas(kArgumentAlignment) std::byte block[kArgumentOffsets<P...>.back() + 1]{};  // not empty without parameters
  (std::construct_at(reinterpret_cast<P*>(block + kArgumentOffsets<P...>[I]), arguments), ...);
  return queue_kernel(
      config, function,
      [](const void* called, [[maybe_unused]] const std::byte* from) {
        reinterpret_cast<void (*)(P...)>(const_cast<void*>(called))(
            *reinterpret_cast<const P*>(from + kArgumentOffsets<P...>[I])...);
      },
      block, sizeof block);
}
}  // namespace levin::emulator

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...), A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "a kernel takes as many arguments as it has parameters");
  static_assert((std::is_trivially_copyable_v<std::remove_cv_t<P>> && ...),
                "a kernel's arguments are copied to the device byte by byte");
  static_assert((sizeof(P) + ... + std::size_t{0}) <= 32764, "a kernel takes at most 32764 bytes of arguments");
  static_assert(((alignof(P) <= levin::emulator::kArgumentAlignment) && ...),
                "a kernel's parameters are aligned to 64 bytes at most");
  return levin::emulator::queue_call<std::remove_cv_t<P>...>(config, levin::emulator::address_of(kernel),
                                                             std::index_sequence_for<P...>(),
                                                             static_cast<P>(std::forward<A>(args))...);
}

template <class F>
cudaError_t cudaFuncSetAttribute(F* function, cudaFuncAttribute attr, int value) {
  return levin::emulator::set_function_attribute(levin::emulator::address_of(function), attr, value);
}
template <class F>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, F* function) {
  return levin::emulator::function_attributes(attributes, levin::emulator::address_of(function));
}
template <class F>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F* function, int threads, std::size_t shared) {
  return levin::emulator::blocks_a_multiprocessor(blocks, levin::emulator::address_of(function), threads, shared);
}
template <class F>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, F* function, const cudaLaunchConfig_t* config) {
  return levin::emulator::active_clusters(clusters, levin::emulator::address_of(function), config);
}
