// Stream capture and graphs.

#include "runtime_fixture.h"

#include <thread>

namespace levin::emulator {
namespace {

/// Ends the test's capture and makes an executable graph of it.
struct TestGraph {
  explicit TestGraph(cudaStream_t stream) {
    CHECK_OK(cudaStreamEndCapture(stream, &graph));
    CHECK_OK(cudaGraphInstantiate(&exec, graph));
  }
  ~TestGraph() {
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
  }
  TestGraph(const TestGraph&) = delete;
  TestGraph& operator=(const TestGraph&) = delete;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
};

cudaStreamCaptureStatus status_of(cudaStream_t stream) {
  cudaStreamCaptureStatus status{};
  CHECK_OK(cudaStreamIsCapturing(stream, &status));
  return status;
}

TEST_CASE("runtime graphs: captured work does not run at the capture, and runs at every launch") {
  const FreshDevices fresh;
  const TestStream stream;
  const DeviceInts a(2, 0);
  const PinnedInts host(2, 5);
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_EQ(status_of(stream), cudaStreamCaptureStatusActive);
  CHECK_OK(cudaMemcpyAsync(a.data, host.data, 8, cudaMemcpyHostToDevice, stream));
  CHECK_OK(cudaMemsetAsync(a.data, 0, 4, stream));
  const TestGraph g(stream);
  CHECK_EQ(status_of(stream), cudaStreamCaptureStatusNone);
  std::size_t count = 0;
  CHECK_OK(cudaGraphGetNodes(g.graph, nullptr, &count));
  REQUIRE_EQ(count, 2u);
  cudaGraphNode_t nodes[2];
  CHECK_OK(cudaGraphGetNodes(g.graph, nodes, &count));
  cudaGraphNodeType type{};
  CHECK_OK(cudaGraphNodeGetType(nodes[1], &type));
  CHECK_EQ(type, cudaGraphNodeTypeMemset);

  CHECK_OK(cudaStreamSynchronize(stream));
  CHECK_EQ(a.read(), std::vector<int>{0, 0});
  for (const int value : {6, 7}) {
    host.data[1] = value;  // the replay reads the current value
    CHECK_OK(cudaGraphLaunch(g.exec, stream));
    CHECK_OK(cudaStreamSynchronize(stream));
    CHECK_EQ(a.read(), std::vector<int>{0, value});
  }
}

/// Captures two streams forked by events and joined again, or not joined.
cudaError_t capture_fork(cudaStream_t main, cudaStream_t side, const DeviceInts& a, const DeviceInts& b, bool wait,
                         bool join, cudaGraph_t* graph) {
  const TestEvent forked, joined;
  CHECK_OK(cudaStreamBeginCapture(main, cudaStreamCaptureModeGlobal));
  CHECK_OK(cudaMemsetAsync(a.data, 1, 4, main));
  CHECK_OK(cudaEventRecord(forked, main));
  CHECK_OK(cudaStreamWaitEvent(side, forked));
  CHECK_EQ(status_of(side), cudaStreamCaptureStatusActive);
  CHECK_OK(cudaMemsetAsync(a.data, 2, 4, side));
  if (wait) {
    CHECK_OK(cudaEventRecord(joined, side));
    CHECK_OK(cudaStreamWaitEvent(main, joined));
  }
  CHECK_OK(cudaMemcpyAsync(b.data, a.data, 4, cudaMemcpyDeviceToDevice, main));
  if (!wait && join) {
    CHECK_OK(cudaEventRecord(joined, side));
    CHECK_OK(cudaStreamWaitEvent(main, joined));
  }
  return cudaStreamEndCapture(main, graph);
}

TEST_CASE("runtime graphs: forked streams are captured with their order; a missing wait fails for some seed") {
  const FreshDevices fresh;
  const TestStream main, side;
  const DeviceInts a(1), b(1);
  for (const bool wait : {true, false}) {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    CHECK_OK(capture_fork(main, side, a, b, wait, true, &graph));
    CHECK_EQ(status_of(side), cudaStreamCaptureStatusNone);
    CHECK_OK(cudaGraphInstantiate(&exec, graph));
    int right = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      config().seed = seed;
      CHECK_OK(cudaGraphLaunch(exec, main));
      CHECK_OK(cudaStreamSynchronize(main));
      right += b.read()[0] == 0x02020202;
    }
    config().seed = 0;
    CHECK_EQ(right == 20, wait);
    CHECK_OK(cudaGraphExecDestroy(exec));
    CHECK_OK(cudaGraphDestroy(graph));
  }
  cudaGraph_t graph = nullptr;
  CHECK_ERROR(capture_fork(main, side, a, b, false, false, &graph), cudaErrorStreamCaptureUnjoined);
  CHECK_EQ(graph, nullptr);
  CHECK_EQ(status_of(side), cudaStreamCaptureStatusNone);
}

TEST_CASE("runtime graphs: calls that end a capture") {
  const FreshDevices fresh;
  const TestStream stream, other;
  const TestEvent event;
  const DeviceInts a(4);
  std::vector<int> pageable(4);
  void* p = nullptr;
  CHECK_OK(cudaEventRecord(event, other));
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  SUBCASE("cudaMalloc") { CHECK_ERROR(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported); }
  SUBCASE("cudaMalloc of another thread") {
    std::thread([&] { CHECK_ERROR(cudaMalloc(&p, 4), cudaErrorStreamCaptureUnsupported); }).join();
  }
  SUBCASE("waiting for the stream") {
    CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorStreamCaptureUnsupported);
    CHECK(report_has("cudaStreamSynchronize was called on a stream that is being captured"));
  }
  SUBCASE("asking the stream") { CHECK_ERROR(cudaStreamQuery(stream), cudaErrorStreamCaptureUnsupported); }
  SUBCASE("waiting for the device") { CHECK_ERROR(cudaDeviceSynchronize(), cudaErrorStreamCaptureUnsupported); }
  SUBCASE("a pageable copy") {
    CHECK_ERROR(cudaMemcpyAsync(a.data, pageable.data(), 16, cudaMemcpyHostToDevice, stream),
                cudaErrorStreamCaptureUnsupported);
  }
  SUBCASE("a blocking copy") {
    CHECK_ERROR(cudaMemcpy(a.data, pageable.data(), 16, cudaMemcpyHostToDevice), cudaErrorStreamCaptureUnsupported);
  }
  SUBCASE("an event from outside") { CHECK_ERROR(cudaStreamWaitEvent(stream, event), cudaErrorStreamCaptureIsolation); }
  SUBCASE("an event from inside") {
    CHECK_OK(cudaEventRecord(event, stream));
    CHECK_ERROR(cudaEventQuery(event), cudaErrorCapturedEvent);
  }
  CHECK_EQ(status_of(stream), cudaStreamCaptureStatusInvalidated);
  CHECK_ERROR(cudaMemsetAsync(a.data, 0, 4, stream), cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK_EQ(graph, nullptr);
  CHECK_EQ(status_of(stream), cudaStreamCaptureStatusNone);
  CHECK_OK(cudaMalloc(&p, 4));
  CHECK_OK(cudaFree(p));
}

TEST_CASE("runtime graphs: the mode decides whose calls end a capture") {
  const FreshDevices fresh;
  const TestStream stream;
  const auto allocates = [] {
    void* p = nullptr;
    const cudaError_t e = cudaMalloc(&p, 4);
    cudaFree(p);
    return e;
  };
  cudaGraph_t graph = nullptr;
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CHECK_OK(allocates());
  CHECK_OK(cudaStreamEndCapture(stream, &graph));
  CHECK_OK(cudaGraphDestroy(graph));

  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  std::thread([&] { CHECK_OK(allocates()); }).join();
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  CHECK_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK_EQ(mode, cudaStreamCaptureModeGlobal);
  CHECK_OK(allocates());
  CHECK_OK(cudaThreadExchangeStreamCaptureMode(&mode));
  CHECK_ERROR(allocates(), cudaErrorStreamCaptureUnsupported);
  CHECK_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("runtime graphs: captures are isolated from the default stream and from each other") {
  const FreshDevices fresh;
  const TestStream blocking(cudaStreamDefault), one, two;
  const TestEvent event;
  const DeviceInts a(4);
  cudaGraph_t graph = nullptr;
  CHECK_ERROR(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal), cudaErrorStreamCaptureUnsupported);
  CHECK_OK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeGlobal));
  CHECK_ERROR(cudaMemsetAsync(a.data, 0, 4), cudaErrorStreamCaptureImplicit);
  CHECK_ERROR(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);

  CHECK_OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK_ERROR(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  CHECK_OK(cudaStreamBeginCapture(two, cudaStreamCaptureModeGlobal));
  CHECK_OK(cudaEventRecord(event, one));
  CHECK_ERROR(cudaStreamWaitEvent(two, event), cudaErrorStreamCaptureMerge);
  CHECK_ERROR(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK_ERROR(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureInvalidated);
  CHECK_ERROR(cudaStreamEndCapture(two, &graph), cudaErrorIllegalState);

  CHECK_OK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
  CHECK_OK(cudaEventRecord(event, one));
  CHECK_OK(cudaStreamWaitEvent(two, event));
  CHECK_ERROR(cudaStreamEndCapture(two, &graph), cudaErrorStreamCaptureUnmatched);
  CHECK_ERROR(cudaStreamEndCapture(one, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_CASE("runtime graphs: memory that was freed after the capture is reported by the replay") {
  const FreshDevices fresh;
  const TestStream stream;
  int* p = nullptr;
  CHECK_OK(cudaMalloc(&p, 4));
  CHECK_OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_OK(cudaMemsetAsync(p, 0, 4, stream));
  const TestGraph g(stream);
  CHECK_OK(cudaFree(p));
  CHECK_OK(cudaGraphLaunch(g.exec, stream));
  CHECK_ERROR(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
  CHECK(report_has("cudaMemsetAsync: the device memory at"));
  clear_errors();
  CHECK_OK(cudaStreamSynchronize(stream));
}

}  // namespace
}  // namespace levin::emulator
