// Copies and fills: values, checks, and the moment at which their sources are read.

#include "runtime_fixture.h"

namespace levin::emulator {
namespace {

TEST_CASE("runtime copies: round trips, within and between rows") {
  const FreshDevices fresh;
  const DeviceInts a(6, 3), b(6, 0);
  CHECK_OK(cudaMemcpy(b.data, a.data, a.bytes(), cudaMemcpyDeviceToDevice));
  CHECK_EQ(b.read(), std::vector<int>(6, 3));
  CHECK_OK(cudaMemset(b.data + 2, 0, 2 * sizeof(int)));
  CHECK_EQ(b.read(), std::vector<int>{3, 3, 0, 0, 3, 3});
  // Copies (2, 3) on the device into the left part of (2, 4) on the host.
  const std::vector<int> six{1, 2, 3, 4, 5, 6};
  CHECK_OK(cudaMemcpy(b.data, six.data(), b.bytes(), cudaMemcpyDefault));
  std::vector<int> wide(8, 0);
  CHECK_OK(cudaMemcpy2D(wide.data(), 16, b.data, 12, 12, 2, cudaMemcpyDeviceToHost));
  CHECK_EQ(wide, std::vector<int>{1, 2, 3, 0, 4, 5, 6, 0});
  CHECK_OK(cudaMemcpy2DAsync(a.data, 12, wide.data() + 1, 16, 12, 2, cudaMemcpyHostToDevice));
  CHECK_EQ(a.read(), std::vector<int>{2, 3, 0, 5, 6, 0});
  CHECK_ERROR(cudaMemcpy2D(wide.data(), 8, b.data, 12, 12, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidPitchValue);
}

TEST_CASE("runtime copies: sizes, directions and dead memory are refused") {
  const FreshDevices fresh;
  const DeviceInts a(4);
  std::vector<int> host(8);
  CHECK_ERROR(cudaMemcpy(host.data(), a.data, 17, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  CHECK(report_has("the source has 16 bytes behind"));
  CHECK_ERROR(cudaMemcpy(a.data + 2, host.data(), 12, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK(report_has("the destination has 8 bytes behind"));
  CHECK_ERROR(cudaMemcpy(host.data(), a.data, 16, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  CHECK(report_has("from host to device, but the source is device memory"));
  CHECK_ERROR(cudaMemcpy(host.data(), host.data() + 4, 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  CHECK_ERROR(cudaMemcpy(a.data, a.data + 1, 8, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  CHECK(report_has("overlap"));
  CHECK_ERROR(cudaMemcpy(host.data(), a.data, 16, static_cast<cudaMemcpyKind>(9)), cudaErrorInvalidMemcpyDirection);
  CHECK_ERROR(cudaMemcpy(nullptr, a.data, 16, cudaMemcpyDefault), cudaErrorInvalidValue);
  CHECK_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  CHECK_ERROR(cudaMemset(host.data(), 0, 4), cudaErrorInvalidValue);
  CHECK_ERROR(cudaMemset(a.data, 0, 17), cudaErrorInvalidValue);
  int* dead = nullptr;
  CHECK_OK(cudaMalloc(&dead, 16));
  CHECK_OK(cudaFree(dead));
  CHECK_ERROR(cudaMemset(dead, 0, 16), cudaErrorInvalidValue);
  CHECK(report_has("lies in no live allocation of device 0"));
}

TEST_CASE("runtime copies: a pageable source is read at the call, a pinned one when the copy runs") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts from_pageable(4), from_pinned(4);
  std::vector<int> pageable(4, 1);
  const PinnedInts pinned(4, 1);
  CHECK_OK(cudaMemcpyAsync(from_pageable.data, pageable.data(), 16, cudaMemcpyHostToDevice, stream));
  CHECK_OK(cudaMemcpyAsync(from_pinned.data, pinned.data, 16, cudaMemcpyHostToDevice, stream));
  CHECK_EQ(queued_work(), 2u);
  pageable.assign(4, 2);
  for (int i = 0; i < 4; ++i) pinned.data[i] = 2;
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(from_pageable.read(), std::vector<int>(4, 1));
  CHECK_EQ(from_pinned.read(), std::vector<int>(4, 2));
}

TEST_CASE("runtime copies: a copy to pageable memory blocks the caller, one to pinned memory does not") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts source(4, 7);
  std::vector<int> pageable(4, 0);
  const PinnedInts pinned(4, 0);
  CHECK_OK(cudaMemcpyAsync(pinned.data, source.data, 16, cudaMemcpyDeviceToHost, stream));
  CHECK_EQ(pinned.data[0], 0);
  CHECK_OK(cudaMemcpyAsync(pageable.data(), source.data, 16, cudaMemcpyDeviceToHost, stream));
  CHECK_EQ(pageable, std::vector<int>(4, 7));
  CHECK_EQ(pinned.data[0], 7);
}

TEST_CASE("runtime copies: between devices") {
  const FreshDevices fresh(2);
  const DeviceInts first(4, 5);
  CHECK_OK(cudaSetDevice(1));
  const DeviceInts second(4, 0), third(4, 0);
  CHECK_OK(cudaMemcpyPeer(second.data, 1, first.data, 0, 16));
  CHECK_EQ(second.read(), std::vector<int>(4, 5));
  CHECK_OK(cudaMemcpyPeerAsync(third.data, 1, first.data, 0, 16));
  CHECK_EQ(third.read(), std::vector<int>(4, 5));
  CHECK_OK(cudaMemset(second.data, 0, 16));
  CHECK_OK(cudaMemcpy(second.data, first.data, 16, cudaMemcpyDefault));
  CHECK_EQ(second.read(), std::vector<int>(4, 5));
  CHECK_ERROR(cudaMemcpyPeer(second.data, 0, first.data, 0, 16), cudaErrorInvalidValue);
  int can = 0;
  CHECK_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  CHECK_EQ(can, 1);
  CHECK_OK(cudaDeviceCanAccessPeer(&can, 1, 1));
  CHECK_EQ(can, 0);
  CHECK_OK(cudaDeviceEnablePeerAccess(0, 0));
  CHECK_ERROR(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
  CHECK_OK(cudaDeviceDisablePeerAccess(0));
  CHECK_ERROR(cudaDeviceDisablePeerAccess(0), cudaErrorPeerAccessNotEnabled);
  CHECK_ERROR(cudaDeviceEnablePeerAccess(1, 0), cudaErrorInvalidDevice);
  CHECK_OK(cudaSetDevice(0));
}

}  // namespace
}  // namespace levin::emulator
