// The emulated runtime's devices, memory and errors.

#include "runtime_fixture.h"

#include <cstdint>
#include <thread>

namespace levin::emulator {
namespace {

TEST_CASE("runtime: number, per-thread choice and properties of devices") {
  const FreshDevices fresh(3, 32);
  int count = 0, device = -1;
  CHECK_OK(cudaGetDeviceCount(&count));
  CHECK_EQ(count, 3);
  CHECK_OK(cudaSetDevice(2));
  CHECK_OK(cudaGetDevice(&device));
  CHECK_EQ(device, 2);
  std::thread([] {
    int other = -1;
    CHECK_OK(cudaGetDevice(&other));
    CHECK_EQ(other, 0);
  }).join();
  CHECK_ERROR(cudaSetDevice(3), cudaErrorInvalidDevice);
  CHECK_ERROR(cudaGetLastError(), cudaErrorInvalidDevice);
  CHECK_OK(cudaGetLastError());

  cudaDeviceProp p{};
  CHECK_OK(cudaGetDeviceProperties(&p, 1));
  CHECK_EQ(std::string(p.name), "Levin emulator");
  CHECK_EQ(p.major, 9);
  CHECK_EQ(p.warpSize, 32);
  CHECK_EQ(p.sharedMemPerBlockOptin, 227u * 1024);
  CHECK_EQ(p.totalGlobalMem, std::size_t{32} << 20);
  int value = 0;
  CHECK_OK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
  CHECK_EQ(value, p.multiProcessorCount);
  CHECK_ERROR(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0), cudaErrorInvalidValue);
  char bus[16];
  CHECK_OK(cudaDeviceGetPCIBusId(bus, sizeof(bus), 1));
  CHECK_EQ(std::string(bus), "0000:02:00.0");
  set_architecture(7, 0);
  CHECK_OK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK_EQ(value, 7);
  set_architecture(9, 0);
  CHECK_OK(cudaSetDevice(0));
}

TEST_CASE("runtime: without a device every call reports that") {
  reset_devices(0, 0);
  int count = -1;
  CHECK_ERROR(cudaGetDeviceCount(&count), cudaErrorNoDevice);
  CHECK_EQ(count, 0);
  void* p = nullptr;
  CHECK_ERROR(cudaMalloc(&p, 4), cudaErrorNoDevice);
  CHECK(report_has("there is no emulated device"));
  reset_devices(1, 16);
  CHECK_OK(cudaMalloc(&p, 4));
  CHECK_OK(cudaFree(p));
}

TEST_CASE("runtime: new memory is NaN everywhere and counted") {
  const FreshDevices fresh;
  std::size_t before = 0, after = 0, total = 0;
  CHECK_OK(cudaMemGetInfo(&before, &total));
  float* p = nullptr;
  CHECK_OK(cudaMalloc(&p, 3 * sizeof(float)));
  CHECK_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
  CHECK_OK(cudaMemGetInfo(&after, &total));
  CHECK_EQ(before - after, 512u);
  float values[3] = {};
  CHECK_OK(cudaMemcpy(values, p, sizeof(values), cudaMemcpyDeviceToHost));
  for (const float v : values) CHECK(v != v);
  CHECK_EQ(leaked_allocations().size(), 1u);
  CHECK_OK(cudaFree(p));
  CHECK_ERROR(cudaFree(p), cudaErrorInvalidValue);
  CHECK(report_has("no live allocation begins at"));
  CHECK_OK(cudaFree(nullptr));
  CHECK_OK(cudaMalloc(&p, 0));
  CHECK_EQ(p, nullptr);
  CHECK_OK(cudaMemGetInfo(&after, &total));
  CHECK_EQ(after, before);
}

TEST_CASE("runtime: running out of memory is reported with numbers, and holes are reused") {
  const FreshDevices fresh(1, 4);
  std::vector<char*> blocks(4);
  for (char*& b : blocks) CHECK_OK(cudaMalloc(&b, std::size_t{1} << 20));
  char* more = nullptr;
  CHECK_ERROR(cudaMalloc(&more, 1), cudaErrorMemoryAllocation);
  CHECK(report_has("1 bytes asked of device 0, where 0 of 4194304 are free"));
  CHECK_ERROR(cudaPeekAtLastError(), cudaErrorMemoryAllocation);
  CHECK_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  CHECK_OK(cudaGetLastError());
  for (int round = 0; round < 20; ++round) {  // the middle ones, in both orders
    CHECK_OK(cudaFree(blocks[1]));
    CHECK_OK(cudaFree(blocks[2]));
    CHECK_OK(cudaMalloc(&blocks[2], std::size_t{1} << 19));
    CHECK_OK(cudaMalloc(&blocks[1], (std::size_t{1} << 20) + 7 * 512));
    std::swap(blocks[1], blocks[2]);
  }
  for (char* b : blocks) CHECK_OK(cudaFree(b));
  CHECK_OK(cudaMalloc(&more, std::size_t{4} << 20));
  CHECK_OK(cudaFree(more));
}

TEST_CASE("runtime: memory freed on a stream is free once the stream reaches the call") {
  const FreshDevices fresh(1, 4);
  const TestStream stream;
  char *p = nullptr, *q = nullptr;
  CHECK_OK(cudaMallocAsync(&p, std::size_t{3} << 20, stream));
  CHECK_OK(cudaMemsetAsync(p, 1, std::size_t{3} << 20, stream));
  CHECK_OK(cudaFreeAsync(p, stream));
  CHECK_EQ(leaked_allocations().size(), 2u);                    // and the stream
  CHECK_OK(cudaMallocAsync(&q, std::size_t{3} << 20, stream));  // runs what is queued to find room
  CHECK_EQ(queued_work(), 0u);
  CHECK_OK(cudaFreeAsync(q, stream));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(leaked_allocations().size(), 1u);
  CHECK_OK(cudaMallocAsync(&p, 64, stream));
  CHECK_OK(cudaFreeAsync(p, stream));
  CHECK_OK(cudaMemsetAsync(p, 1, 64, stream));  // after the free in the stream's order
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK(report_has("was freed before the queued work ran"));
}

TEST_CASE("runtime: queries of addresses") {
  const FreshDevices fresh(2);
  CHECK_OK(cudaSetDevice(1));
  const DeviceInts d(4);
  const PinnedInts h(4);
  int on_stack = 0;
  cudaPointerAttributes a{};
  CHECK_OK(cudaPointerGetAttributes(&a, d.data + 1));
  CHECK_EQ(a.type, cudaMemoryTypeDevice);
  CHECK_EQ(a.device, 1);
  CHECK_OK(cudaPointerGetAttributes(&a, h.data + 3));
  CHECK_EQ(a.type, cudaMemoryTypeHost);
  CHECK_OK(cudaPointerGetAttributes(&a, &on_stack));
  CHECK_EQ(a.type, cudaMemoryTypeUnregistered);
  std::vector<int> mine(8);
  CHECK_OK(cudaHostRegister(mine.data(), 32, cudaHostRegisterDefault));
  CHECK_ERROR(cudaHostRegister(mine.data() + 1, 4, cudaHostRegisterDefault), cudaErrorHostMemoryAlreadyRegistered);
  CHECK_OK(cudaPointerGetAttributes(&a, mine.data() + 7));
  CHECK_EQ(a.type, cudaMemoryTypeHost);
  CHECK_OK(cudaHostUnregister(mine.data()));
  CHECK_ERROR(cudaHostUnregister(mine.data()), cudaErrorHostMemoryNotRegistered);
  CHECK_ERROR(cudaFreeHost(mine.data()), cudaErrorInvalidValue);
  cudaMemPool_t pool = nullptr;
  CHECK_OK(cudaDeviceGetDefaultMemPool(&pool, 1));
  std::uint64_t threshold = 77;
  CHECK_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  threshold = 0;
  CHECK_OK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  CHECK_EQ(threshold, 77u);
}

TEST_CASE("runtime: a reset device has nothing left; reset() reports what was alive") {
  const FreshDevices fresh(2);
  int* p = nullptr;
  cudaStream_t stream = nullptr;
  CHECK_OK(cudaMalloc(&p, 40));
  CHECK_OK(cudaStreamCreate(&stream));
  CHECK_OK(cudaSetDevice(1));
  int* q = nullptr;
  CHECK_OK(cudaMalloc(&q, 44));
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaDeviceReset());
  CHECK_ERROR(cudaFree(p), cudaErrorInvalidValue);
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorInvalidResourceHandle);
  const std::vector<std::string> left = reset();
  REQUIRE_EQ(left.size(), 1u);
  CHECK_EQ(left[0].substr(0, 41), "an allocation of 44 bytes on device 1 at ");
}

TEST_CASE("runtime: errors have CUDA's names and descriptions") {
  CHECK_EQ(std::string(cudaGetErrorName(cudaErrorIllegalAddress)), "cudaErrorIllegalAddress");
  CHECK_EQ(std::string(cudaGetErrorString(cudaErrorIllegalAddress)), "an illegal memory access was encountered");
  CHECK_EQ(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)), "out of memory");
  CHECK_EQ(std::string(cudaGetErrorString(static_cast<cudaError_t>(12345))), "unrecognized error code");
  int version = 0;
  CHECK_OK(cudaDriverGetVersion(&version));
  CHECK_EQ(version, 13000);
}

}  // namespace
}  // namespace levin::emulator
