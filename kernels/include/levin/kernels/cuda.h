#pragma once
// levin::cuda::is_available(), streams, events, memory, graphs and settings of NVIDIA devices, with PyTorch's names. In
// a build without CUDA is_available() is false, device_count() 0, empty_cache() does nothing, settings read as their
// defaults, and the rest throws DeviceError.
//
// levin::cuda is a class of static members, since the function levin::cuda(int), which makes a Device, has its name.

#include <levin/core/device.h>

#include <memory>
#include <string>

namespace levin {

class Tensor;

struct cuda {
  cuda() = delete;

  static constexpr int kCurrent = -1;  ///< the device that is current in this thread

  // Devices. `device` is an index from 0, or kCurrent.

  /// Whether a device can be used here. Never throws.
  static bool is_available();
  /// The kernels that the program was linked with: "ON" (compiled by nvcc), "EMULATE" (run by the emulator on the CPU)
  /// or "OFF" (none).
  static const char* flavour();
  static int device_count();
  /// Why there is no device to use: one sentence; empty when there is one.
  static std::string why_unavailable();
  static int current_device();
  static void set_device(int device);
  /// Waits for all work of the device. This, the waits for a stream or an event, and every copy to the host (item(),
  /// cpu()) throw IndexError when a kernel met an index or a label out of range before; kernels themselves do not stop.
  static void synchronize(int device = kCurrent);

  struct DeviceProperties {
    std::string name;
    int major = 0, minor = 0;  ///< compute capability
    int multi_processor_count = 0;
    int warp_size = 0;
    int max_threads_per_block = 0;
    int max_threads_per_multi_processor = 0;
    int regs_per_multiprocessor = 0;
    std::size_t shared_memory_per_block = 0;        ///< bytes, without asking for more
    std::size_t shared_memory_per_block_optin = 0;  ///< bytes, the most that a kernel may ask for
    std::size_t shared_memory_per_multiprocessor = 0;
    std::size_t l2_cache_size = 0;
    std::size_t total_memory = 0;
  };
  static DeviceProperties get_device_properties(int device = kCurrent);

  /// Makes a device current in this thread until the guard goes.
  class DeviceGuard {
   public:
    explicit DeviceGuard(int device);
    ~DeviceGuard();
    DeviceGuard(const DeviceGuard&) = delete;
    DeviceGuard& operator=(const DeviceGuard&) = delete;

   private:
    int former_ = 0;
  };

  // Settings of the whole process. PyTorch has them in torch.backends.cuda.

  /// Whether float32 products and convolutions may round their operands to TF32, 10 bits of mantissa, and use the
  /// tensor cores: several times faster, with errors of about 1e-3 of an operand. Off unless set.
  static void set_allow_tf32(bool allow);
  static bool allow_tf32();
  /// Whose kernels compute matrix products: "levin", our own and the default, or "cublas". NVIDIA's library is opened
  /// by this call: from LEVIN_CUBLAS_LIBRARY, a path, or where the loader looks. Products that it does not take go on
  /// with our own kernels. Throws ValueError for another name, and DeviceError where the library cannot be opened; the
  /// choice then stays as it was.
  static void set_preferred_blas_library(const std::string& name);
  static std::string preferred_blas_library();
  /// The same for convolutions: "levin" or "cudnn", from LEVIN_CUDNN_LIBRARY.
  static void set_preferred_conv_library(const std::string& name);
  static std::string preferred_conv_library();

  // Streams. Work of one stream runs in order; streams run beside each other unless events order them.

  class Event;

  /// A queue out of its device's 32, given out in turn; they live as long as the process.
  class Stream {
   public:
    explicit Stream(int device = kCurrent);
    explicit Stream(levin::Stream stream) : stream_(stream) {}
    operator levin::Stream() const { return stream_; }
    Device device() const { return stream_.device(); }
    void* handle() const { return stream_.handle(); }
    /// Whether all its work is done.
    bool query() const;
    void synchronize() const;
    void record_event(Event& event) const;
    /// Later work of this stream waits for what the event recorded, or for what is queued on the other stream now.
    void wait_event(const Event& event) const;
    void wait_stream(const Stream& other) const;

   private:
    levin::Stream stream_;
  };

  /// The stream that this thread's operations use, and the one they use at first: one a device, shared by all threads.
  static Stream current_stream(int device = kCurrent);
  static Stream default_stream(int device = kCurrent);
  static void set_stream(const Stream& stream);

  /// Makes a stream and its device current in this thread until the guard goes. Work already queued on the former
  /// stream is not waited for: wait_stream() says so where it must be.
  class StreamGuard {
   public:
    explicit StreamGuard(const Stream& stream);
    ~StreamGuard();
    StreamGuard(const StreamGuard&) = delete;
    StreamGuard& operator=(const StreamGuard&) = delete;

   private:
    DeviceGuard device_;
    Stream former_;
  };

  /// A mark in a stream's work.
  class Event {
   public:
    explicit Event(bool enable_timing = false);
    ~Event();
    Event(Event&& other) noexcept;
    Event& operator=(Event&& other) noexcept;
    void record();  ///< on the current stream
    void record(const Stream& stream);
    void wait() const;  ///< the current stream's later work waits for the mark
    void wait(const Stream& stream) const;
    bool query() const;        ///< whether the mark was passed; true when nothing was recorded
    void synchronize() const;  ///< the host waits for it
    /// Milliseconds from this mark to `end`; both were made with enable_timing and recorded, and `end` is waited for.
    double elapsed_time(const Event& end) const;
    void* handle() const { return handle_; }

   private:
    void* handle_ = nullptr;  // made at the first record, on that stream's device
    int device_ = -1;
    bool timing_;
  };

  // Memory of the caching allocator, in bytes.

  static std::size_t memory_allocated(int device = kCurrent);
  static std::size_t max_memory_allocated(int device = kCurrent);
  static std::size_t memory_reserved(int device = kCurrent);
  static std::size_t max_memory_reserved(int device = kCurrent);
  static void reset_peak_memory_stats(int device = kCurrent);
  /// Gives all cached memory back to the devices.
  static void empty_cache();

  struct MemoryReport {
    std::size_t allocated = 0, peak_allocated = 0;  ///< held by tensors and scratch, rounded up to blocks
    std::size_t reserved = 0, peak_reserved = 0;    ///< taken from the device
    std::size_t live_blocks = 0;
    std::size_t parked_blocks = 0;       ///< freed, but another stream may still use them
    std::size_t segments = 0;            ///< pieces that the device gave
    std::size_t system_allocations = 0;  ///< how often the device was asked
    std::size_t splits = 0, merges = 0;
    std::size_t retries = 0;  ///< how often the cache was flushed because the device had no more
    std::size_t out_of_memories = 0;
    std::size_t cap = 0;  ///< highest `reserved` allowed; 0: none
  };
  static MemoryReport memory_stats(int device = kCurrent);
  /// The report as a table for people.
  static std::string memory_summary(int device = kCurrent);
  /// Highest `reserved` that this process may have on the device, 0 for no cap; beyond it OutOfMemory is thrown.
  static void set_memory_cap(std::size_t bytes, int device = kCurrent);
  /// The same as a part of the device's memory, over 0 and up to 1; throws ValueError.
  static void set_per_process_memory_fraction(double fraction, int device = kCurrent);
  /// Whether memory is filled with bytes 0xff, NaN in every floating type, each time it is given out (for tensors and
  /// for kernels' scratch): what reads memory that nobody wrote is wrong every time, not only now and then. At first
  /// off, or on where LEVIN_CUDA_FILL=1 is in the environment. In a build without CUDA nothing happens.
  static void fill_uninitialized_memory(bool on);
  /// To be called when a tensor is used on a stream other than the one it was made on: its memory, once freed, is not
  /// given out again before that stream's work until then is done.
  static void record_stream(const Tensor& tensor, const Stream& stream);

  /// A copy of a tensor of the CPU in page-locked memory (PyTorch's Tensor.pin_memory); one that is page-locked comes
  /// back itself. A copy from there to a device runs beside the host, which therefore must not write to the tensor
  /// before the device has read it; the memory is kept that long by itself. Throws DeviceError for a tensor of a
  /// device.
  static Tensor pin_memory(const Tensor& tensor);
  /// Whether the tensor's memory came from pin_memory(); false in a build without CUDA.
  static bool is_pinned(const Tensor& tensor);

  // Graphs: work recorded once and started again by one call.

  using MempoolId = std::uint64_t;
  /// For capture_begin(): graphs that never run at the same time may share memory.
  static MempoolId graph_pool_handle();
  /// Whether the current stream is recorded now.
  static bool is_current_stream_capturing();

  /// Work queued on the current stream between capture_begin() and capture_end() is recorded, not run. Memory that
  /// is allocated in between comes from a pool of the graph's own and keeps its address as long as the graph lives.
  /// Kernels run with the addresses and arguments of the recording: keep the inputs alive and copy new values into
  /// them. Copies between host and device can't be recorded; run the work once or more before, so that all is loaded.
  /// Generators and the learning rates of capturable optimizers are read at each replay (docs/cuda_graphs.md).
  class Graph {
   public:
    Graph();
    ~Graph();  ///< waits for its last replay
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;
    void capture_begin(MempoolId pool = 0);  ///< 0: a pool of its own
    void capture_end();
    /// Records what `work` queues. An exception from it ends the capture, after which the graph is empty.
    void capture(const std::function<void()>& work, MempoolId pool = 0);
    /// On the current stream, behind the last replay. Throws what the changed settings of a recorded optimizer ask for.
    void replay();
    void reset();   ///< forgets the recording; its pool's memory goes back to the cache
    MempoolId pool() const;

   private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
  };
};

}  // namespace levin
