#pragma once
// Helpers of the runtime's tests.

#include <cuda_runtime.h>
#include <levin/emulator/devices.h>

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#define CHECK_OK(call) CHECK_EQ(std::string(cudaGetErrorName(call)), "cudaSuccess")
#define CHECK_ERROR(call, error) CHECK_EQ(std::string(cudaGetErrorName(call)), #error)

namespace levin::emulator {

/// Resets the devices for one test, which must leave nothing alive.
struct FreshDevices {
  explicit FreshDevices(int count = 1, std::size_t megabytes = 16) {
    config().seed = 0;
    reset_devices(count, megabytes);
  }
  ~FreshDevices() {
    clear_errors();
    CHECK_EQ(reset(), std::vector<std::string>());
    config().seed = 0;
  }
};

inline bool report_has(const std::string& part) {
  const std::string report = last_report();
  if (report.find(part) != std::string::npos) return true;
  MESSAGE("the report is: ", report);
  return false;
}

/// `count` ints on the current device, all `value`.
struct DeviceInts {
  explicit DeviceInts(std::size_t n, int value = 0) : count(n) {
    CHECK_OK(cudaMalloc(&data, n * sizeof(int)));
    const std::vector<int> values(n, value);
    CHECK_OK(cudaMemcpy(data, values.data(), n * sizeof(int), cudaMemcpyHostToDevice));
  }
  ~DeviceInts() { cudaFree(data); }
  DeviceInts(const DeviceInts&) = delete;
  DeviceInts& operator=(const DeviceInts&) = delete;

  std::vector<int> read() const {
    std::vector<int> values(count);
    CHECK_OK(cudaMemcpy(values.data(), data, count * sizeof(int), cudaMemcpyDeviceToHost));
    return values;
  }
  std::size_t bytes() const { return count * sizeof(int); }

  std::size_t count;
  int* data = nullptr;
};

/// Ints in pinned memory, all `value`.
struct PinnedInts {
  explicit PinnedInts(std::size_t n, int value = 0) : count(n) {
    CHECK_OK(cudaMallocHost(&data, n * sizeof(int)));
    for (std::size_t i = 0; i < n; ++i) data[i] = value;
  }
  ~PinnedInts() { cudaFreeHost(data); }
  PinnedInts(const PinnedInts&) = delete;
  PinnedInts& operator=(const PinnedInts&) = delete;

  std::size_t bytes() const { return count * sizeof(int); }

  std::size_t count;
  int* data = nullptr;
};

struct TestStream {
  explicit TestStream(unsigned flags = cudaStreamNonBlocking) { CHECK_OK(cudaStreamCreateWithFlags(&handle, flags)); }
  ~TestStream() { cudaStreamDestroy(handle); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct TestEvent {
  explicit TestEvent(unsigned flags = cudaEventDefault) { CHECK_OK(cudaEventCreateWithFlags(&handle, flags)); }
  ~TestEvent() { cudaEventDestroy(handle); }
  TestEvent(const TestEvent&) = delete;
  TestEvent& operator=(const TestEvent&) = delete;
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

}  // namespace levin::emulator
