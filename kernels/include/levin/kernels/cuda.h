#pragma once
// levin::cuda::is_available(), streams, events, memory, graphs and settings of NVIDIA devices, with PyTorch's names. In
// a build without CUDA is_available() is false, device_count() 0, empty_cache() does nothing, settings read as their
// defaults, and the rest throws DeviceError.
//
// levin::cuda is a class of static members, since the function levin::cuda(int), which makes a Device, has its name.

#include <levin/core/device.h>
#include <levin/core/owned_ptr.h>

#include <string>

namespace levin {

class Tensor;

/// Functions and types of NVIDIA devices, as torch.cuda. Those that need a device throw DeviceError where there is
/// none.
struct cuda {
  cuda() = delete;

  static constexpr int kCurrent = -1;  ///< the device that is current in this thread

  // Devices. `device` is an index from 0, or kCurrent.

  /// True if a device can be used here. Never throws.
  static bool is_available();
  /// Returns which kernels the program was linked with: "ON" (compiled by nvcc), "EMULATE" (run by the emulator on the
  /// CPU) or "OFF" (none).
  static const char* flavour();
  /// Returns the number of devices; 0 where none can be used.
  static int device_count();
  /// Returns one sentence that says why no device can be used; empty if one can.
  static std::string why_unavailable();
  /// Returns the index of the device that is current in this thread.
  static int current_device();
  /// Makes a device current in this thread; throws DeviceError if it does not exist.
  static void set_device(int device);
  /// Waits for all work of the device. This function, the waits for a stream or an event, and every copy to the host
  /// (item(), cpu()) throw IndexError if a kernel has met an index or a label out of range; kernels themselves do not
  /// stop.
  static void synchronize(int device = kCurrent);

  /// Properties of a device, as CUDA reports them.
  struct DeviceProperties {
    std::string name;                         ///< product: "NVIDIA H100 80GB HBM3"
    int major = 0;                            ///< compute capability, before the dot
    int minor = 0;                            ///< compute capability, after the dot
    int multi_processor_count = 0;            ///< streaming multiprocessors (SMs)
    int warp_size = 0;                        ///< threads of a warp
    int max_threads_per_block = 0;            ///< largest block
    int max_threads_per_multi_processor = 0;  ///< resident on one SM
    int regs_per_multiprocessor = 0;          ///< 32-bit registers of one SM
    std::size_t shared_memory_per_block = 0;           ///< bytes, without opt-in
    std::size_t shared_memory_per_block_optin = 0;     ///< bytes, the maximum with opt-in
    std::size_t shared_memory_per_multiprocessor = 0;  ///< bytes
    std::size_t l2_cache_size = 0;                     ///< bytes
    std::size_t total_memory = 0;                      ///< bytes of the device's memory
  };
  /// Returns the properties of a device.
  static DeviceProperties get_device_properties(int device = kCurrent);

  /// Makes a device current in this thread for the guard's lifetime.
  class DeviceGuard {
   public:
    /// Begins with this device; kCurrent changes nothing.
    explicit DeviceGuard(int device);
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

   private:
    int former_ = 0;
  };

  // Settings of the whole process; PyTorch has them in torch.backends.cuda.

  /// Sets whether float32 matrix products and convolutions may round their operands to TF32, 10 bits of mantissa, and
  /// use the tensor cores: several times faster, with errors of about 1e-3 of an operand. Off by default.
  static void set_allow_tf32(bool allow);
  /// Returns that setting.
  static bool allow_tf32();
  /// Selects the library that computes matrix products: "levin", the default, or "cublas". This call opens NVIDIA's
  /// library: from the path LEVIN_CUBLAS_LIBRARY, or where the loader looks. Products that the library does not support
  /// are still computed by Levin's kernels. Throws ValueError for another name, and DeviceError if the library cannot
  /// be opened; the selection then stays unchanged.
  static void set_preferred_blas_library(const std::string& name);
  /// Returns that selection.
  static std::string preferred_blas_library();
  /// Selects the library for convolutions in the same way: "levin" or "cudnn", from LEVIN_CUDNN_LIBRARY.
  static void set_preferred_conv_library(const std::string& name);
  /// Returns that selection.
  static std::string preferred_conv_library();

  // Streams. Work on one stream runs in order; different streams run concurrently unless events order them.

  class Event;

  /// One of the device's 32 streams, which are handed out in turn and live as long as the process.
  class Stream {
   public:
    /// Takes the device's next stream.
    explicit Stream(int device = kCurrent);
    /// Refers to the same stream as the argument, which must be one of CUDA.
    explicit Stream(levin::Stream stream) : stream_(stream) {}
    /// Returns the stream as kernels take it.
    operator levin::Stream() const { return stream_; }
    /// Returns the device on which its work runs, and the cudaStream_t.
    Device device() const { return stream_.device(); }
    void* handle() const { return stream_.handle(); }
    /// True if all its work is done.
    bool query() const;
    /// Makes the host wait for all its work.
    void synchronize() const;
    /// Records the event after the work queued so far.
    void record_event(Event& event) const;
    /// Makes later work of this stream wait for the recorded event, or for the work queued on the other stream so far.
    void wait_event(const Event& event) const;
    void wait_stream(const Stream& other) const;

   private:
    levin::Stream stream_;
  };

  /// Return the stream that this thread's operations use, and the default stream: one per device, shared by all
  /// threads.
  static Stream current_stream(int device = kCurrent);
  static Stream default_stream(int device = kCurrent);
  /// Sets the stream that this thread's operations on the stream's device use; the current device stays the same.
  static void set_stream(const Stream& stream);

  /// Makes a stream and its device current in this thread for the guard's lifetime. Does not wait for work already
  /// queued on the former stream: call wait_stream() where that is needed.
  class StreamGuard {
   public:
    /// Begins with this stream.
    explicit StreamGuard(const Stream& stream);
    ~StreamGuard();
    StreamGuard(const StreamGuard&) = delete;
    StreamGuard& operator=(const StreamGuard&) = delete;

   private:
    DeviceGuard device_;
    Stream former_;
  };

  /// A marker in a stream's work.
  class Event {
   public:
    /// Makes a marker that is not recorded yet; elapsed_time() needs enable_timing.
    explicit Event(bool enable_timing = false);
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    /// Marks the end of the work that is queued on a stream, by default on the current one. Throws DeviceError on
    /// another device than before.
    void record();
    void record(const Stream& stream);
    /// Makes the later work of a stream, by default of the current one, wait for the event.
    void wait() const;
    void wait(const Stream& stream) const;
    /// True if the event was reached, or if nothing was recorded.
    bool query() const;
    /// Makes the host wait for the event.
    void synchronize() const;
    /// Returns the milliseconds from this event to `end`. Both must be made with enable_timing and recorded, else
    /// ValueError is thrown. Waits for `end`.
    double elapsed_time(const Event& end) const;
    /// Returns the cudaEvent_t; null before the first record().
    void* handle() const { return handle_; }

   private:
    void* handle_ = nullptr;  // created by the first record(), on that stream's device
    int device_ = -1;
    bool timing_;
  };

  // Memory of the caching allocator.

  /// Return the bytes that are used by tensors now and at most, and the bytes that are taken from the device for them
  /// or the cache, now and at most. reset_peak_memory_stats() sets both maxima to the present values.
  static std::size_t memory_allocated(int device = kCurrent);
  static std::size_t max_memory_allocated(int device = kCurrent);
  static std::size_t memory_reserved(int device = kCurrent);
  static std::size_t max_memory_reserved(int device = kCurrent);
  static void reset_peak_memory_stats(int device = kCurrent);
  /// Returns all cached memory to the devices.
  static void empty_cache();

  /// Counters of the caching allocator; sizes are in bytes.
  struct MemoryReport {
    std::size_t allocated = 0;           ///< used by tensors and scratch, rounded up to blocks
    std::size_t peak_allocated = 0;      ///< highest `allocated` since reset_peak_memory_stats()
    std::size_t reserved = 0;            ///< allocated from the device
    std::size_t peak_reserved = 0;       ///< highest `reserved` since then
    std::size_t live_blocks = 0;         ///< number of blocks in use
    std::size_t parked_blocks = 0;       ///< number of blocks freed, but possibly still used by another stream
    std::size_t segments = 0;            ///< number of segments allocated from the device
    std::size_t system_allocations = 0;  ///< number of allocations made on the device
    std::size_t splits = 0;              ///< number of times a block was divided
    std::size_t merges = 0;              ///< number of times neighbouring free blocks were joined
    std::size_t retries = 0;             ///< number of times the cache was flushed because the device had no memory
    std::size_t out_of_memories = 0;     ///< number of times OutOfMemory was thrown
    std::size_t cap = 0;                 ///< maximum of `reserved`; 0 for no limit
  };
  /// Returns the counters of a device.
  static MemoryReport memory_stats(int device = kCurrent);
  /// Returns the report as a human-readable table.
  static std::string memory_summary(int device = kCurrent);
  /// Limits the `reserved` memory of this process on the device, 0 for no limit; beyond the limit OutOfMemory is
  /// thrown.
  static void set_memory_cap(std::size_t bytes, int device = kCurrent);
  /// Sets the same limit as a fraction of the device's memory, in (0, 1]; throws ValueError.
  static void set_per_process_memory_fraction(double fraction, int device = kCurrent);
  /// Sets whether memory is filled with bytes 0xff, NaN in every floating type, each time it is allocated (for tensors
  /// and for kernels' scratch): code that reads uninitialised memory is then wrong every time, not only now and then.
  /// Off by default, or on if LEVIN_CUDA_FILL=1 is set in the environment. Does nothing in a build without CUDA.
  static void fill_uninitialized_memory(bool on);
  /// Must be called when a tensor is used on a stream other than the one it was created on: after the tensor is freed,
  /// its memory is not reused before that stream has finished the work queued until then.
  static void record_stream(const Tensor& tensor, const Stream& stream);

  /// Returns a copy of a CPU tensor in page-locked memory (PyTorch's Tensor.pin_memory); a tensor that is already
  /// page-locked is returned itself. A copy from there to a device runs asynchronously, so the host must not write to
  /// the tensor before the device has read it; the memory is kept alive until then. Throws DeviceError for a tensor on
  /// a device.
  static Tensor pin_memory(const Tensor& tensor);
  /// True if the tensor's memory came from pin_memory(); false in a build without CUDA.
  static bool is_pinned(const Tensor& tensor);

  // Graphs: work that is captured once and launched again by one call.

  using MempoolId = std::uint64_t;  ///< number of a pool of memory for graphs
  /// Returns a pool for capture_begin(): graphs that never run at the same time may share memory.
  static MempoolId graph_pool_handle();
  /// True if the current stream is being captured.
  static bool is_current_stream_capturing();

  /// Work queued on the current stream between capture_begin() and capture_end() is recorded, not run. Memory that is
  /// allocated in between comes from the graph's own pool and keeps its address as long as the graph lives. Replays use
  /// the addresses and arguments of the recording: keep the inputs alive and copy new values into them. Copies between
  /// host and device cannot be recorded; run the work at least once before, so that everything is loaded. Generators
  /// and the learning rates of capturable optimizers are read at each replay (docs/cuda_graphs.md).
  class Graph {
   public:
    Graph();
    ~Graph();  ///< waits for its last replay
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    /// Begins to record the current stream; `pool` 0 means a pool of its own. Throws DeviceError if the graph holds a
    /// recording already.
    void capture_begin(MempoolId pool = 0);
    /// Ends the recording, after which the graph can be replayed. Throws DeviceError if none has begun, and if the work
    /// cannot be captured.
    void capture_end();
    /// Records the work that `work` queues. An exception from it ends the capture, after which the graph is empty.
    void capture(const std::function<void()>& work, MempoolId pool = 0);
    /// Launches the graph on the current stream, after the last replay. Throws DeviceError if nothing is recorded, and
    /// if a setting of an optimizer that is part of the recording has changed.
    void replay();
    /// Waits for the last replay and discards the recording; its pool's memory returns to the cache.
    void reset();
    /// Returns the pool of the recording, 0 without one.
    MempoolId pool() const;

   private:
    struct Impl;
    OwnedPtr<Impl> impl_;
  };
};

}  // namespace levin
