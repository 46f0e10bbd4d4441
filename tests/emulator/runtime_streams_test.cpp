// Deferred streams, events, host functions, and their order.

#include "runtime_fixture.h"

#include <atomic>
#include <thread>

namespace levin::emulator {
namespace {

void set_one(void* flag) { *static_cast<int*>(flag) = 1; }

TEST_CASE("runtime streams: work does not run before a wait for it") {
  const FreshDevices fresh;
  const TestStream stream;
  const TestEvent event;
  int ran = 0;
  CHECK_OK(cudaLaunchHostFunc(stream, set_one, &ran));
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK_EQ(ran, 0);
  CHECK_ERROR(cudaEventQuery(event), cudaErrorNotReady);
  CHECK_ERROR(cudaStreamQuery(stream), cudaErrorNotReady);
  CHECK_ERROR(cudaGetLastError(), cudaErrorNotReady);
  SUBCASE("for the stream") { CHECK_OK(cudaStreamSynchronize(stream)); }
  SUBCASE("for the event") { CHECK_OK(cudaEventSynchronize(event)); }
  SUBCASE("for the device") { CHECK_OK(cudaDeviceSynchronize()); }
  SUBCASE("by polling") {
    while (cudaEventQuery(event) == cudaErrorNotReady) {
    }
  }
  CHECK_EQ(ran, 1);
  CHECK_OK(cudaEventQuery(event));
  CHECK_OK(cudaStreamQuery(stream));
  CHECK_OK(cudaStreamQuery(nullptr));
}

TEST_CASE("runtime streams: a long queue runs without a wait") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(1);
  std::size_t most = 0;
  for (int i = 0; i < 10000; ++i) {
    REQUIRE_EQ(cudaMemsetAsync(a.data, i, 1, stream), cudaSuccess);
    most = std::max(most, queued_work());
  }
  CHECK_GE(most, 4000u);
  CHECK_LE(most, 4097u);
  CHECK_OK(cudaStreamSynchronize(stream));
}

TEST_CASE("runtime streams: with a seed some work runs before a wait") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(1);
  config().seed = 3;
  for (int i = 0; i < 100; ++i) CHECK_OK(cudaMemsetAsync(a.data, i, 4, stream));
  CHECK_LT(queued_work(), 100u);
  CHECK_GT(queued_work(), 50u);
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(a.read()[0], 99 * 0x01010101);
}

/// One stream writes and another reads. Returns the value read.
int write_and_read(std::uint64_t seed, bool wait) {
  config().seed = seed;
  const TestStream writer, reader;
  const TestEvent written;
  const DeviceInts a(1, 0), copy(1, 0);
  const PinnedInts host(1, 42);
  CHECK_OK(cudaMemcpyAsync(a.data, host.data, 4, cudaMemcpyHostToDevice, writer));
  CHECK_OK(cudaEventRecord(written, writer));
  if (wait) CHECK_OK(cudaStreamWaitEvent(reader, written));
  CHECK_OK(cudaMemcpyAsync(copy.data, a.data, 4, cudaMemcpyDeviceToDevice, reader));
  CHECK_OK(cudaStreamSynchronize(reader));
  const int found = copy.read()[0];
  CHECK_OK(cudaDeviceSynchronize());
  return found;
}

TEST_CASE("runtime streams: an event orders two streams; without it some seed gives a wrong value") {
  const FreshDevices fresh;
  int wrong = 0, right = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CHECK_EQ(write_and_read(seed, true), 42);
    ++(write_and_read(seed, false) == 42 ? right : wrong);
  }
  CHECK_GE(wrong, 1);
  CHECK_GE(right, 1);
}

TEST_CASE("runtime streams: work that is not needed stays in its queue") {
  const FreshDevices fresh;
  const TestStream one, other;
  int ran_one = 0, ran_other = 0;
  CHECK_OK(cudaLaunchHostFunc(other, set_one, &ran_other));
  CHECK_OK(cudaLaunchHostFunc(one, set_one, &ran_one));
  CHECK_OK(cudaStreamSynchronize(one));
  CHECK_EQ(ran_one, 1);
  CHECK_EQ(ran_other, 0);
  CHECK_OK(cudaDeviceSynchronize());
  CHECK_EQ(ran_other, 1);
}

TEST_CASE("runtime streams: an event that is recorded again refers to the later record") {
  const FreshDevices fresh;
  const TestStream stream, other;
  const TestEvent event;
  int first = 0, second = 0;
  CHECK_OK(cudaLaunchHostFunc(stream, set_one, &first));
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK_OK(cudaStreamWaitEvent(other, event));  // waits for the first record
  CHECK_OK(cudaLaunchHostFunc(stream, set_one, &second));
  CHECK_OK(cudaEventRecord(event, stream));
  CHECK_OK(cudaStreamSynchronize(other));
  CHECK_EQ(first, 1);
  CHECK_EQ(second, 0);
  CHECK_OK(cudaEventSynchronize(event));
  CHECK_EQ(second, 1);
}

TEST_CASE("runtime streams: the default stream waits for blocking streams, and they for it") {
  const FreshDevices fresh;
  const TestStream blocking(cudaStreamDefault), free_one(cudaStreamNonBlocking);
  int in_blocking = 0, in_free = 0, in_default = 0, after = 0;
  CHECK_OK(cudaLaunchHostFunc(blocking, set_one, &in_blocking));
  CHECK_OK(cudaLaunchHostFunc(free_one, set_one, &in_free));
  CHECK_OK(cudaLaunchHostFunc(nullptr, set_one, &in_default));
  CHECK_OK(cudaLaunchHostFunc(cudaStreamPerThread, set_one, &after));
  SUBCASE("waiting for the default stream") {
    CHECK_OK(cudaStreamSynchronize(cudaStreamLegacy));
    CHECK_EQ(in_blocking + in_default, 2);
    CHECK_EQ(in_free, 0);
  }
  SUBCASE("waiting for the thread's stream") {
    CHECK_OK(cudaStreamSynchronize(cudaStreamPerThread));
    CHECK_EQ(in_blocking + in_default + after, 3);
    CHECK_EQ(in_free, 0);
  }
  SUBCASE("waiting for a stream of its own") {
    CHECK_OK(cudaStreamSynchronize(free_one));
    CHECK_EQ(in_blocking + in_default + after, 0);
    CHECK_EQ(in_free, 1);
  }
  CHECK_OK(cudaDeviceSynchronize());
}

TEST_CASE("runtime streams: a destroyed stream's work still runs, before the default stream's") {
  const FreshDevices fresh;
  int ran = 0;
  {
    const TestStream stream(cudaStreamDefault);
    CHECK_OK(cudaLaunchHostFunc(stream, set_one, &ran));
  }
  CHECK_EQ(ran, 0);
  CHECK_OK(cudaStreamSynchronize(nullptr));
  CHECK_EQ(ran, 1);
}

TEST_CASE("runtime streams: times, flags and invalid handles") {
  const FreshDevices fresh(2);
  cudaStream_t high = nullptr;
  CHECK_OK(cudaStreamCreateWithPriority(&high, cudaStreamNonBlocking, -99));
  int value = 0, greatest = 0;
  unsigned flags = 0;
  CHECK_OK(cudaDeviceGetStreamPriorityRange(nullptr, &greatest));
  CHECK_OK(cudaStreamGetPriority(high, &value));
  CHECK_EQ(value, greatest);
  CHECK_OK(cudaStreamGetFlags(high, &flags));
  CHECK_EQ(flags, cudaStreamNonBlocking);
  const TestEvent start, end, untimed(cudaEventDisableTiming);
  float ms = -1;
  CHECK_ERROR(cudaEventElapsedTime(&ms, start, end), cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaEventRecord(start, high));
  CHECK_OK(cudaEventRecord(end, high));
  CHECK_OK(cudaEventRecord(untimed, high));
  CHECK_ERROR(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
  CHECK_OK(cudaStreamSynchronize(high));
  CHECK_OK(cudaEventElapsedTime(&ms, start, end));
  CHECK_GE(ms, 0);
  CHECK_ERROR(cudaEventElapsedTime(&ms, start, untimed), cudaErrorInvalidResourceHandle);
  CHECK_OK(cudaSetDevice(1));
  const TestEvent elsewhere;
  CHECK_ERROR(cudaEventRecord(elsewhere, high), cudaErrorInvalidResourceHandle);
  CHECK(report_has("the event belongs to device 1, the stream to device 0"));
  CHECK_OK(cudaSetDevice(0));
  CHECK_OK(cudaStreamDestroy(high));
  CHECK_ERROR(cudaStreamDestroy(high), cudaErrorInvalidResourceHandle);
  CHECK_ERROR(cudaStreamSynchronize(high), cudaErrorInvalidResourceHandle);
}

TEST_CASE("runtime streams: a host function must not call CUDA") {
  const FreshDevices fresh;
  const TestStream stream;
  cudaError_t found = cudaSuccess;
  CHECK_OK(cudaLaunchHostFunc(
      stream, [](void* e) { *static_cast<cudaError_t*>(e) = cudaDeviceSynchronize(); }, &found));
  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_ERROR(found, cudaErrorNotPermitted);
}

TEST_CASE("runtime streams: a host function may wait for a thread that uses CUDA") {
  const FreshDevices fresh;
  const TestStream stream, other;
  std::atomic<int> stage{0};
  std::thread helper([&] {
    while (stage != 1) std::this_thread::yield();
    int done = 0;
    CHECK_OK(cudaLaunchHostFunc(other, set_one, &done));
    CHECK_OK(cudaStreamSynchronize(other));
    stage = 2;
  });
  CHECK_OK(cudaLaunchHostFunc(
      stream,
      [](void* s) {
        auto& at = *static_cast<std::atomic<int>*>(s);
        at = 1;
        while (at != 2) std::this_thread::yield();
      },
      &stage));
  CHECK_OK(cudaStreamSynchronize(stream));
  helper.join();
  CHECK_EQ(stage.load(), 2);
}

TEST_CASE("runtime streams: many threads at once") {
  const FreshDevices fresh(2);
  for (const std::uint64_t seed : {0u, 5u}) {
    config().seed = seed;
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([t, &failures] {
        cudaSetDevice(t % 2);
        const TestStream stream;
        for (int i = 0; i < 50; ++i) {
          int* p = nullptr;
          int back = 0;
          bool ok = cudaMalloc(&p, 4) == cudaSuccess;
          ok = ok && cudaMemcpyAsync(p, &i, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess;
          ok = ok && cudaMemcpyAsync(&back, p, 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess;
          ok = cudaFree(p) == cudaSuccess && ok;
          if (!ok || back != i) ++failures;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    CHECK_EQ(failures.load(), 0);
  }
}

}  // namespace
}  // namespace levin::emulator
