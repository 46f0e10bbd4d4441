#include <doctest/doctest.h>

#include <levin/core/tensor.h>
#include <levin/kernels/cuda.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/caching.h"
#include "cuda/gate.h"
#include "kernels/cuda/device/backend.h"
#include "kernels/cuda/device/streams.h"

using namespace levin;
using kernels::cuda::copy_bytes;
using test::Gate;

namespace {

constexpr Device kCuda = levin::cuda(0);

cudaStream_t native(const cuda::Stream& s) { return static_cast<cudaStream_t>(s.handle()); }

/// 1000 floats on the device, all bytes equal.
class Buffer {
 public:
  explicit Buffer(int byte = 0) : tensor_(empty({1000}, {.device = kCuda})) { fill(byte); }
  void fill(int byte) const {
    Stream stream = current_stream(kCuda);
    device_backend(kCuda).fill_bytes(tensor_.raw_data(), byte, 4000, stream);
  }
  void copy_from(const Buffer& other) const {
    copy_bytes(tensor_.raw_data(), kCuda, other.tensor_.raw_data(), kCuda, 4000, current_stream(kCuda));
  }
  /// Returns the byte that all equal, or -1. Reads on `stream`.
  int value(const Stream& stream) const {
    std::vector<std::uint8_t> host(4000);
    copy_bytes(host.data(), kCpu, tensor_.raw_data(), kCuda, host.size(), stream);
    const std::set<int> values(host.begin(), host.end());
    return values.size() == 1 ? *values.begin() : -1;
  }
  int value() const { return value(current_stream(kCuda)); }
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

}  // namespace

TEST_CASE("stream guards nest, and each thread has its own current stream") {
  const cuda::Stream first = cuda::current_stream(0);
  CHECK(first.handle() == cuda::default_stream(0).handle());
  CHECK(first.handle() != nullptr);
  const cuda::Stream a(0), b(0);
  CHECK(a.handle() != b.handle());
  {
    const cuda::StreamGuard outer(a);
    CHECK(current_stream(kCuda).handle() == a.handle());
    {
      const cuda::StreamGuard inner(b);
      CHECK(current_stream(kCuda).handle() == b.handle());
    }
    CHECK(current_stream(kCuda).handle() == a.handle());
    std::thread([&] { CHECK(current_stream(kCuda).handle() == first.handle()); }).join();
  }
  CHECK(current_stream(kCuda).handle() == first.handle());
  CHECK_THROWS_AS(cuda::set_stream(cuda::Stream(levin::Stream(kCpu))), DeviceError);
}

TEST_CASE("a stream guard makes the stream's device current") {
  if (cuda::device_count() < 2) return;
  const cuda::Stream other(1);
  {
    const cuda::StreamGuard guard(other);
    CHECK(cuda::current_device() == 1);
    CHECK(cuda::current_stream().handle() == other.handle());
    CHECK(current_stream(kCuda).handle() == cuda::default_stream(0).handle());
  }
  CHECK(cuda::current_device() == 0);
}

TEST_CASE("streams come from a pool in round-robin order") {
  std::set<void*> handles;
  for (int i = 0; i < 100; ++i) handles.insert(cuda::Stream(0).handle());
  CHECK(handles.size() == 32);
}

TEST_CASE("a stream runs its work in order, and an event makes another stream wait" * LEVIN_HOLDS_A_STREAM) {
  const cuda::Stream a(0), b(0);
  const Buffer source(1), target(2);
  cuda::synchronize(0);
  cuda::Event done;
  CHECK(done.query());
  {
    Gate gate(native(a));
    {
      const cuda::StreamGuard guard(a);
      source.fill(7);
      done.record();
    }
    CHECK(!done.query());
    CHECK(!a.query());
    CHECK(b.query());
    done.wait(b);
    const cuda::StreamGuard guard(b);
    target.copy_from(source);
    CHECK(!b.query());
    gate.open();
  }
  CHECK(target.value(b) == 7);
  done.synchronize();
  CHECK(done.query());
  a.synchronize();
  CHECK(a.query());
}

TEST_CASE("non-blocking streams wait for each other only on request" * LEVIN_HOLDS_A_STREAM) {
  const cuda::Stream a(0), b(0);
  const Buffer x(1), y(1);
  cuda::synchronize(0);
  Gate gate(native(a));
  {
    const cuda::StreamGuard guard(a);
    x.fill(2);
  }
  {
    const cuda::StreamGuard guard(b);
    y.fill(2);
  }
  CHECK(y.value(b) == 2);  // a is blocked, b is not
  CHECK(!a.query());
  b.wait_stream(a);
  gate.open();
  CHECK(x.value(b) == 2);
}

TEST_CASE("events measure time only if created for it") {
  cuda::Event begin(true), end(true), plain;
  begin.record();
  const Buffer some(3);
  end.record();
  CHECK(begin.elapsed_time(end) >= 0);
  plain.record();
  CHECK_THROWS_AS(begin.elapsed_time(plain), ValueError);
  CHECK_THROWS_AS(begin.elapsed_time(cuda::Event(true)), ValueError);
  const cuda::Event moved(std::move(begin));
  CHECK(moved.elapsed_time(end) >= 0);
}

TEST_CASE("an event belongs to one device") {
  if (cuda::device_count() < 2) return;
  cuda::Event event;
  event.record(cuda::default_stream(1));
  event.wait(cuda::default_stream(0));
  CHECK_THROWS_AS(event.record(cuda::default_stream(0)), DeviceError);
}

TEST_CASE("a recorded tensor keeps its memory until the other stream is done" * LEVIN_HOLDS_A_STREAM) {
  const test::Caching cache;
  const cuda::Stream side(0);
  const std::size_t parked = cuda::memory_stats(0).parked_blocks;
  Buffer* used = new Buffer(1);
  const void* address = used->tensor().raw_data();
  cuda::synchronize(0);
  Gate gate(native(side));
  {
    const cuda::StreamGuard guard(side);
    used->fill(2);
  }
  cuda::record_stream(used->tensor(), side);
  CHECK_THROWS_AS(cuda::record_stream(empty({2}), side), DeviceError);
  delete used;
  CHECK(cuda::memory_stats(0).parked_blocks == parked + 1);
  CHECK(empty({1000}, {.device = kCuda}).raw_data() != address);
  gate.open();
  CHECK(empty({1000}, {.device = kCuda}).raw_data() == address);
}

TEST_CASE("a graph records work that replays run repeatedly") {
  const Buffer input(1), output(9);
  cuda::synchronize(0);
  cuda::Graph graph;
  CHECK_THROWS_AS(graph.replay(), DeviceError);
  CHECK_THROWS_AS(graph.capture_end(), DeviceError);
  graph.capture_begin();
  CHECK(cuda::is_current_stream_capturing());
  output.copy_from(input);
  graph.capture_end();
  CHECK(!cuda::is_current_stream_capturing());
  CHECK_THROWS_AS(graph.capture_begin(), DeviceError);
  CHECK(output.value() == 9);  // recorded, not run
  graph.replay();
  CHECK(output.value() == 1);
  for (const int byte : {4, 5}) {
    input.fill(byte);
    graph.replay();
    CHECK(output.value() == byte);
  }
  graph.reset();
  CHECK_THROWS_AS(graph.replay(), DeviceError);
}

TEST_CASE("streams forked from a capture belong to the graph") {
  const Buffer input(1), middle(0), output(0);
  const cuda::Stream main(0), side(0);
  cuda::synchronize(0);
  cuda::Graph graph;
  {
    const cuda::StreamGuard guard(main);
    graph.capture_begin();
    side.wait_stream(main);
    {
      const cuda::StreamGuard branch(side);
      middle.copy_from(input);
    }
    main.wait_stream(side);
    output.copy_from(middle);
    graph.capture_end();
  }
  CHECK(output.value() == 0);
  graph.replay();
  CHECK(output.value() == 1);
}

TEST_CASE("a graph's memory is reserved for it while it lives") {
  const Buffer input(3), output(0);
  cuda::synchronize(0);
  std::set<const void*> inside;
  auto* graph = new cuda::Graph;
  graph->capture_begin();
  {
    const Buffer temporary;
    inside.insert(temporary.tensor().raw_data());
    temporary.copy_from(input);
    output.copy_from(temporary);
  }
  {
    const Tensor again = empty({1000}, {.device = kCuda});
    inside.insert(again.raw_data());
  }
  graph->capture_end();
  for (int i = 0; i < 20; ++i) {
    const Buffer other(5);
    CHECK(!inside.contains(other.tensor().raw_data()));
    graph->replay();
    CHECK(other.value() == 5);
    CHECK(output.value() == 3);
  }
  cuda::empty_cache();
  const std::size_t reserved = cuda::memory_reserved(0);
  delete graph;
  CHECK(cuda::memory_reserved(0) <= reserved);
  cuda::empty_cache();
  CHECK(cuda::memory_reserved(0) < reserved);
}

TEST_CASE("a pool's blocks are used only by its captures, and by all once it is released") {
  using kernels::cuda::Allocator;
  Allocator memory(0, true);
  cudaStream_t stream = native(cuda::default_stream(0));
  void* before = memory.allocate(5000, stream);
  memory.begin_pool(77, stream);
  void* a = memory.allocate(5000, stream);
  memory.free(a);
  void* b = memory.allocate(5000, stream);
  CHECK(a == b);  // reused within the capture
  memory.free(b);
  memory.end_pool(77);
  CHECK(memory.report().segments == 2);
  void* after = memory.allocate(5000, stream);
  CHECK(after != a);
  memory.begin_pool(77, stream);  // a second graph shares it
  void* kept = memory.allocate(5000, stream);
  CHECK(kept == a);
  memory.end_pool(77);
  memory.release_pool(77);
  memory.free(after);
  memory.free(before);
  memory.empty_cache();
  CHECK(memory.report().segments == 1);  // the second graph still holds it
  memory.release_pool(77);
  CHECK(memory.report().segments == 1);  // a live block is in it
  memory.free(kept);
  CHECK(memory.allocate(5000, stream) == kept);
  memory.free(kept);
  memory.empty_cache();
  CHECK(memory.report().reserved == 0);
}

TEST_CASE("memory freed during a capture is reused only after it") {
  using kernels::cuda::Allocator;
  Allocator memory(0, true);
  cudaStream_t stream = native(cuda::default_stream(0)), side = native(cuda::Stream(0));
  void* p = memory.allocate(5000, stream);
  memory.record_stream(p, side);
  memory.begin_pool(78, stream);
  memory.free(p);
  CHECK_THROWS_AS(memory.empty_cache(), DeviceError);
  CHECK(memory.report().parked_blocks == 1);
  memory.end_pool(78);
  memory.release_pool(78);
  cuda::synchronize(0);
  CHECK(memory.allocate(5000, stream) == p);
  CHECK(memory.report().parked_blocks == 0);
}

TEST_CASE("without a cache a graph's memory lives as long as the graph") {
  using kernels::cuda::Allocator;
  Allocator memory(0, false);
  cudaStream_t stream = native(cuda::default_stream(0));
  void* outside = memory.allocate(100, stream);
  memory.begin_pool(79, stream);
  void* p = memory.allocate(5000, stream);
  memory.free(p);
  void* q = memory.allocate(5000, stream);
  CHECK(p != q);
  memory.free(outside);
  memory.end_pool(79);
  memory.free(q);
  CHECK(memory.report().reserved == 10000);
  memory.release_pool(79);
  CHECK(memory.report().reserved == 0);
}

TEST_CASE("a copy from or to the host cannot be captured, and the error says so") {
  const Buffer device(1);
  cuda::synchronize(0);
  cuda::Graph graph;
  graph.capture_begin();
  std::string text;
  try {
    device.value();
  } catch (const DeviceError& e) {
    text = e.what();
  }
  device.fill(2);
  graph.capture_end();
  CHECK(text.starts_with("[copy] a copy from cuda:0 to cpu cannot be part of a graph."));
  CHECK(device.value() == 1);
  graph.replay();
  CHECK(device.value() == 2);
}

TEST_CASE("an aborted capture leaves the stream usable") {
  const Buffer device(1);
  cuda::synchronize(0);
  {
    cuda::Graph graph;
    graph.capture_begin();
    device.fill(2);
  }
  CHECK(!cuda::is_current_stream_capturing());
  CHECK(device.value() == 1);
  device.fill(3);
  CHECK(device.value() == 3);
}
