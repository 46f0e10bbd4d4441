// levin::cuda::Graph.

#include "kernels/cuda/base/error.h"
#include "kernels/cuda/device/allocator.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/recording.h"
#include "kernels/cuda/device/streams.h"

#include <levin/core/error.h>

#include <atomic>
#include <utility>

namespace levin {

namespace backend = kernels::cuda;

struct cuda::Graph::Impl {
  enum class State { empty, capturing, ready } state = State::empty;
  int device = 0;
  MempoolId pool = 0;
  cudaStream_t stream = nullptr;  ///< the captured stream
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t replayed = nullptr;  ///< marks the end of the last replay
  std::unique_ptr<backend::GraphRecording> recording;
};

cuda::MempoolId cuda::graph_pool_handle() {
  static std::atomic<MempoolId> last{0};
  return ++last;
}

bool cuda::is_current_stream_capturing() {
  if (!is_available()) return false;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  backend::check(cudaStreamIsCapturing(backend::current_stream(current_device()), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

cuda::Graph::Graph() : impl_(std::make_unique<Impl>()) {}

cuda::Graph::~Graph() {
  try {
    reset();
  } catch (const Error&) {  // the device has failed, so no work of the graph runs any more
  }
}

cuda::MempoolId cuda::Graph::pool() const { return impl_->pool; }

void cuda::Graph::capture_begin(MempoolId pool) {
  Impl& g = *impl_;
  if (g.state != Impl::State::empty) {
    throw DeviceError("[graph] it holds a recording already. Call reset() before another capture_begin().");
  }
  g.device = current_device();
  g.stream = backend::current_stream(g.device);
  g.pool = pool == 0 ? graph_pool_handle() : pool;
  backend::Allocator& memory = backend::allocator(g.device);
  memory.begin_pool(g.pool, g.stream);
  const backend::DeviceGuard guard(g.device);
  // Thread-local capture mode lets other threads go on, for example allocate memory.
  const cudaError_t error = cudaStreamBeginCapture(g.stream, cudaStreamCaptureModeThreadLocal);
  if (error != cudaSuccess) {
    memory.end_pool(g.pool);
    memory.release_pool(g.pool);
    backend::check_failed(error, "cudaStreamBeginCapture");
  }
  g.state = Impl::State::capturing;
  g.recording = std::make_unique<backend::GraphRecording>(g.device, g.stream);
}

void cuda::Graph::capture(const std::function<void()>& work, MempoolId pool) {
  capture_begin(pool);
  try {
    work();
    capture_end();
  } catch (...) {
    reset();
    throw;
  }
}

void cuda::Graph::capture_end() {
  Impl& g = *impl_;
  if (g.state != Impl::State::capturing) {
    throw DeviceError("[graph] there is no capture to end. Call capture_begin() first.");
  }
  const backend::DeviceGuard guard(g.device);
  cudaGraph_t graph = nullptr;
  const char* call = "cudaStreamEndCapture";
  cudaError_t error = cudaStreamEndCapture(g.stream, &graph);
  if (error == cudaSuccess) {
    call = "cudaGraphInstantiate";
    error = cudaGraphInstantiate(&g.exec, graph, 0);
  }
  if (graph) static_cast<void>(cudaGraphDestroy(graph));
  backend::Allocator& memory = backend::allocator(g.device);
  memory.end_pool(g.pool);
  g.recording->end();
  if (error != cudaSuccess) {
    g.recording.reset();
    memory.release_pool(g.pool);
    g = Impl{};
    backend::check_failed(error, call);
  }
  g.state = Impl::State::ready;
}

void cuda::Graph::replay() {
  Impl& g = *impl_;
  if (g.state != Impl::State::ready) {
    throw DeviceError(
        "[graph] there is nothing to replay. Record something between capture_begin() and capture_end().");
  }
  const backend::DeviceGuard guard(g.device);
  if (is_current_stream_capturing()) {
    throw DeviceError("[graph] a graph cannot be replayed while another one is captured. Replay it before or after.");
  }
  cudaStream_t stream = backend::current_stream(g.device);
  // CUDA orders the replays, but not the values written for them: they must follow the last replay, and for the first
  // one the earlier use of the memory.
  if (g.replayed) {
    backend::check(cudaStreamWaitEvent(stream, g.replayed, 0), "cudaStreamWaitEvent");
  } else {
    backend::order_streams(g.device, g.stream, g.device, stream);
  }
  g.recording->before_run(stream);
  backend::check(cudaGraphLaunch(g.exec, stream), "cudaGraphLaunch");
  if (!g.replayed) g.replayed = backend::event_pool().take(g.device);
  backend::check(cudaEventRecord(g.replayed, stream), "cudaEventRecord");
}

void cuda::Graph::reset() {
  Impl g = std::exchange(*impl_, Impl{});
  if (g.state == Impl::State::empty) return;
  const backend::DeviceGuard guard(g.device, std::nothrow);
  backend::Allocator& memory = backend::allocator(g.device);
  if (g.state == Impl::State::capturing) {  // the capture was abandoned
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(g.stream, &graph) == cudaSuccess) static_cast<void>(cudaGraphDestroy(graph));
    static_cast<void>(cudaGetLastError());
    memory.end_pool(g.pool);
  }
  cudaError_t error = cudaSuccess;
  if (g.replayed) {
    error = cudaEventSynchronize(g.replayed);
    backend::event_pool().put_back(g.device, g.replayed);
  }
  if (g.exec) static_cast<void>(cudaGraphExecDestroy(g.exec));
  g.recording.reset();
  memory.release_pool(g.pool);
  backend::check(error, "cudaEventSynchronize");
}

}  // namespace levin
