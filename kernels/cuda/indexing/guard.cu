// The memory in which kernels report indices out of range, one slot per device, and the kernel that only checks values.

#include "kernels/cuda/indexing/guard.cuh"

#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/device/streams.h"
#include "kernels/cuda/indexing/refusal.h"

#include <atomic>
#include <mutex>
#include <new>

namespace levin::kernels::cuda {

namespace {

struct IndexSlot {
  std::mutex mutex;
  IndexGate* gate = nullptr;
  std::atomic<IndexReport*> report{nullptr};
  std::atomic<std::uint32_t> tickets{0};
  cudaStream_t stream = nullptr;
};

IndexSlot& slot_of(int device) {
  static IndexSlot* const slots = new IndexSlot[kMaxDevices];  // never freed: kernels may still run at exit
  return slots[device];
}

void open_gate(const IndexSlot& s) {
  check(cudaMemsetAsync(s.gate, 0xff, sizeof(IndexGate), s.stream), "cudaMemsetAsync");
  check(cudaStreamSynchronize(s.stream), "cudaStreamSynchronize");
}

/// Allocates the slot at the first use, which may be inside a capture and therefore needs the relaxed mode.
void make(IndexSlot& s, int device) {
  const std::lock_guard lock(s.mutex);
  if (s.report.load()) return;
  const DeviceGuard guard(device);
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  void* report = nullptr;
  const cudaError_t pinned = cudaHostAlloc(&report, sizeof(IndexReport), cudaHostAllocMapped | cudaHostAllocPortable);
  const cudaError_t held = cudaMalloc(reinterpret_cast<void**>(&s.gate), sizeof(IndexGate));
  s.stream = next_pooled_stream(device);
  if (pinned == cudaSuccess && held == cudaSuccess) open_gate(s);
  static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
  check(pinned, "cudaHostAlloc");
  check(held, "cudaMalloc");
  s.report.store(new (report) IndexReport{});
}

IndexGuard guard_of(const char* op, const Shape& sizes, std::int64_t size, const Stream& stream) {
  const int device = stream.device().index;
  IndexSlot& s = slot_of(device);
  if (!s.report.load()) make(s, device);
  IndexGuard g;
  g.gate = s.gate;
  g.report = s.report.load();
  g.op = op;
  g.size = size;
  g.ticket = s.tickets.fetch_add(1) & 0xffffff;
  g.dims = sizes.size();
  for (int i = 0; i < g.dims; ++i) g.sizes[i] = sizes[i];
  return g;
}

}  // namespace

__global__ void refuse_values(const std::int64_t* values, std::int64_t count, IndexGuard guard) {
  for (std::int64_t i = global_thread(); i < count; i += grid_threads()) admits(guard, values[i], i);
}

IndexGuard index_guard(const char* op, const Shape& sizes, std::int64_t size, const Stream& stream) {
  return guard_of(op, sizes, size, stream);
}

IndexGuard label_guard(const char* op, const Shape& sizes, std::int64_t classes, std::int64_t ignored,
                       const Stream& stream) {
  IndexGuard g = guard_of(op, sizes, classes, stream);
  g.labels = true;
  g.ignored = ignored;
  return g;
}

void check_values(const TensorView& index, const IndexGuard& guard, Stream& stream) {
  const std::int64_t count = index.numel();
  if (count == 0) return;
  launch(refuse_values, {.grid = blocks_for(count), .block = 256, .stream = stream},
         static_cast<const std::int64_t*>(index.pointer), count, guard);
}

void throw_refused_index(int device) {
  IndexSlot& s = slot_of(device);
  const IndexReport* const seen = s.report.load();
  if (!seen || *static_cast<const volatile unsigned*>(&seen->written) == 0) return;
  IndexReport report;
  {
    const std::lock_guard lock(s.mutex);
    const DeviceGuard guard(device);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // another stream may be writing
    report = *s.report.load();
    s.report.load()->written = 0;
    open_gate(s);
  }
  if (report.written == 0) return;  // another thread has already taken the report
  const IndexGuard& g = report.guard;
  if (g.labels) refuse_label(g.op, report.value, report.place, g.size, g.ignored);
  refuse_index(g.op, report.value, Shape(g.sizes, g.sizes + g.dims), report.place, g.size);
}

}  // namespace levin::kernels::cuda
