#pragma once
// The runtime's state: devices, streams, events, graphs and queued work. One mutex guards all of it; it is released
// while an operation runs.

#include "arena.h"

#include <levin/emulator/runtime_api.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace levin::emulator {

using Lock = std::unique_lock<std::mutex>;
inline constexpr int kMostDevices = 16;

struct Range {
  const void* p;
  std::size_t bytes;
};

/// Work that involves several devices. It proceeds in steps, whenever something waits for one of them or a bell rings.
class Collective {
 public:
  enum class State { waits, moved, done };
  virtual ~Collective() = default;
  /// Proceeds as far as possible, with the device's memory open. After `done`, failure() returns the error, if any.
  virtual State advance() = 0;
  virtual std::string failure() const = 0;
  /// Called when the work cannot continue, to notify the other devices.
  virtual void abandon(const std::string& why) = 0;
};

/// The action of an operation.
struct Work {
  enum class Kind { marker, kernel, copy, fill, host, release, collective };
  Kind kind = Kind::marker;
  std::uint32_t opens = 0;           ///< bit d: device d's memory must be open
  const char* name = "";             ///< name of the kernel or the call
  std::vector<Range> touches;        ///< device memory that must be alive when the work runs
  std::function<std::string()> run;  ///< returns the error, or an empty string
  std::shared_ptr<Collective> collective;
};

/// An operation in the queues; done when it and all before it have run.
struct Op {
  std::uint64_t number = 0;
  int device = 0;
  Work work;
  std::vector<std::shared_ptr<Op>> before;
  std::vector<Op*> after;
  int waits_for = 0;
  bool done = false, running = false;
  std::chrono::steady_clock::time_point finished;
};
using OpRef = std::shared_ptr<Op>;

struct Node {
  int device = 0;
  Work work;
  std::vector<std::size_t> before;
};

/// The nodes of a graph, shared by the graph, its executables and the work of its launches.
using Nodes = std::vector<Node>;

struct Capture {
  std::uint64_t id = 0;
  std::unique_ptr<CUgraph_st> graph;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  CUstream_st* origin = nullptr;
  std::thread::id owner;
  bool invalid = false, ended = false;
  std::vector<CUstream_st*> streams;
};
using CaptureRef = std::shared_ptr<Capture>;

}  // namespace levin::emulator

struct CUstream_st {
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  bool legacy = false;
  levin::emulator::OpRef last;
  int impatience = 0;  ///< number of queries that found it busy
  levin::emulator::CaptureRef capture;
  std::vector<std::size_t> tails;  ///< nodes that the next captured one depends on
};

struct CUevent_st {
  int device = 0;
  unsigned flags = 0;
  levin::emulator::OpRef op;
  int impatience = 0;
  levin::emulator::CaptureRef capture;
  std::vector<std::size_t> tails;
};

struct CUgraphNode_st {
  cudaGraphNodeType type;
};

struct CUgraph_st {
  levin::emulator::Nodes nodes;
  std::vector<std::unique_ptr<CUgraphNode_st>> handles;
};

struct CUgraphExec_st {
  std::shared_ptr<const levin::emulator::Nodes> nodes;
  levin::emulator::OpRef last;
};

struct CUmemPoolHandle_st {
  int device = 0;
  std::uint64_t threshold = 0;
};

namespace levin::emulator {

struct Device {
  std::unique_ptr<Arena> arena;
  std::unique_ptr<CUstream_st> legacy;
  std::unordered_map<std::thread::id, std::unique_ptr<CUstream_st>> per_thread;
  std::vector<OpRef> orphans;       ///< last operations of destroyed streams, which the legacy stream still waits for
  cudaError_t error = cudaSuccess;  ///< the sticky error
  std::uint32_t peers = 0;          ///< bit d: kernels may access device d's memory
  CUmemPoolHandle_st pool;
};

/// Properties of a kernel. The object is never moved or destroyed, because queued launches point to it.
struct Function {
  std::string name, symbol;
  std::optional<int> asked_shared;  ///< set by cudaFuncAttributeMaxDynamicSharedMemorySize
  bool big_clusters = false;
  std::atomic<std::size_t> array_bytes{0};  ///< of a block's shared arrays that launches have reached so far
  unsigned most_threads = 0;                ///< per block, over all launches
  std::size_t most_dynamic = 0;             ///< bytes of dynamic shared memory, over all launches
};

/// The limits of shared memory per block and per multiprocessor, and the bytes the system reserves per block.
struct SharedLimits {
  std::size_t block, multiprocessor, reserved;
};
SharedLimits shared_limits(int major, int minor);

struct HostBlock {
  std::size_t bytes = 0;
  bool owned = false;  ///< allocated by the emulator, not registered
  int device = 0;
};

/// The location of an address.
struct Place {
  enum class Kind { pageable, pinned, device, nowhere } kind = Kind::pageable;
  int device = 0;
  const char* begin = nullptr;  ///< begin of the allocation
  std::size_t bytes = 0;
};

class Runtime {
 public:
  Runtime();

  std::mutex mutex;
  std::vector<Device> devices;
  int major = 9, minor = 0;
  std::unordered_set<CUstream_st*> streams;
  std::unordered_set<CUevent_st*> events;
  std::unordered_set<CUgraph_st*> graphs;
  std::unordered_set<CUgraphExec_st*> executables;
  std::unordered_map<const void*, Function> functions;
  std::map<const char*, HostBlock> host_blocks;
  std::vector<CaptureRef> captures;
  std::string report;
  std::uint64_t openings = 0, host_waits = 0, shared_requests = 0;

  // ---- devices and memory
  void make_devices(int count, std::size_t capacity);
  Place place_of(const void* p) const;
  /// Stores `text` as the last report and returns the error.
  cudaError_t refuse(cudaError_t error, std::string text);
  cudaError_t allocate(Lock& lock, void** p, std::size_t bytes, int device, const char* call);
  /// Frees immediately; the arena must be open. Returns cudaErrorIllegalAddress if red zones were overwritten.
  cudaError_t release(int device, void* p, const char* call);
  /// Frees all of the device's memory, streams and events. Returns a sentence for each overwritten red zone.
  std::vector<std::string> empty_device(Lock& lock, int device);
  cudaError_t health(int device) const { return devices[static_cast<std::size_t>(device)].error; }

  // ---- streams and queued work
  /// Returns the stream of a handle; null if there is none.
  CUstream_st* find(cudaStream_t handle);
  /// Queues work that waits only for `before`.
  OpRef add(int device, Work work, const std::vector<OpRef>& before);
  /// Queues work on the stream, or captures it. It also waits for `extra`.
  cudaError_t submit(Lock& lock, CUstream_st& stream, Work work, const OpRef& extra = nullptr);
  void complete(Lock& lock, std::vector<OpRef> targets);
  /// Calls complete() for a call that makes the host wait, whether or not anything is pending.
  void host_wait(Lock& lock, std::vector<OpRef> targets) { ++host_waits, complete(lock, std::move(targets)); }
  void complete_device(Lock& lock, int device);
  /// Runs some pending work if there is much of it, or if the seed says so.
  void relieve(Lock& lock);
  /// Runs one step towards `target`, for programs that poll.
  void nudge(Lock& lock, const OpRef& target, int& impatience);
  void drop_queues(Lock& lock, int device);  ///< -1: of all devices

  // ---- work of several devices
  /// Returns queued operations that other ranks wait for; null while there are no communicators.
  std::vector<OpRef> (*demanded)() = nullptr;
  /// Wakes all waiters after an event outside of the queues. Called under the mutex.
  void ring() { ++rings_, progress_.notify_all(); }
  /// The loop of the communicators' driver thread, until `stop`.
  void drive_until(const bool& stop);
  bool waits(std::thread::id thread) const { return waiting_.count(thread) > 0; }
  std::size_t queued() const { return live_.size(); }

  // ---- capture
  cudaError_t capture(CUstream_st& stream, Work work);
  /// Refuses a call that is illegal during a capture, and invalidates the capture.
  cudaError_t check_no_capture(const char* call);
  /// Checks a synchronising call on this stream.
  cudaError_t check_not_captured(CUstream_st& stream, const char* call);
  void end_capture(const CaptureRef& capture);
  void destroy(CUstream_st* stream);

  /// The exclusive right to run work or to access device memory.
  class Turn {
   public:
    Turn(Runtime& runtime, Lock& lock);
    ~Turn();
    void wait();     ///< yields the turn until something happens
    void release();  ///< closes the memory and gives up the turn
    void take();

   private:
    Runtime& runtime_;
    Lock& lock_;
  };
  /// Opens the memory of these devices, and with `only` closes that of the others.
  void open(std::uint32_t mask, bool only);
  void close();

 private:
  void run(Lock& lock, Turn& turn, OpRef op);
  void execute(Lock& lock, Turn& turn, Op& op);
  void start(Op& op);
  void fail(const Op& op, cudaError_t error, std::string text);
  bool run_one(Lock& lock, Turn& turn, const std::vector<OpRef>& candidates, std::size_t first);
  bool drive(Lock& lock, Turn& turn);
  void complete_in_order(Lock& lock, Turn& turn, std::vector<OpRef> targets);
  void wait(Lock& lock, Turn& turn, std::uint64_t rings);
  std::string check_zones(const Work& work);
  std::string check_alive(const Work& work) const;
  void finish(Op& op);
  std::vector<OpRef> needed(const std::vector<OpRef>& targets) const;
  std::uint64_t random();

  std::condition_variable free_;      ///< signalled when the turn is free
  std::condition_variable progress_;  ///< signalled when an operation is done
  bool taken_ = false;
  std::uint64_t next_number_ = 1;
  std::map<std::uint64_t, OpRef> live_;  ///< operations that are not done
  std::vector<Op*> ready_;               ///< operations whose dependencies are done
  std::vector<OpRef> running_;           ///< collectives that have started
  std::uint64_t rings_ = 0;
  std::unordered_multiset<std::thread::id> waiting_;
  std::uint64_t seed_ = 0, random_state_ = 0;
  bool check_zones_ = true;
};

/// Returns the runtime, which is created at first use and never destroyed, because static objects may free memory late.
Runtime& runtime();

/// State of the calling thread.
struct ThreadState {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool in_host_function = false;
};
ThreadState& this_thread();

/// Writes "levin emulator: ..." to standard error, for errors that a call's result might hide.
void warn(const std::string& text);
int number_from(const char* variable, int otherwise);

/// Stores an error for cudaGetLastError.
inline cudaError_t note(cudaError_t error) {
  if (error != cudaSuccess) this_thread().last_error = error;
  return error;
}

/// Wraps every API call: f(runtime, lock) runs under the mutex. With Needs::health the call is refused if the device
/// has failed.
enum class Needs { nothing, health };
cudaError_t enter(Runtime& rt, Needs needs);
template <class F>
cudaError_t call(Needs needs, F&& f) {
  Runtime& rt = runtime();
  Lock lock(rt.mutex);
  const cudaError_t refused = enter(rt, needs);
  return note(refused != cudaSuccess ? refused : f(rt, lock));
}

std::string text_of(const void* p);
/// Returns a text such as "an allocation of 64 bytes on device 0".
std::string text_of(const Allocation& a, int device);

}  // namespace levin::emulator
