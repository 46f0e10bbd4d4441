#pragma once
// Collective operations among the ranks of a group.
//
// Every operation returns a Work at once and runs asynchronously. The tensors are valid and may be reused after wait().
// All ranks of a group call the same operations in the same order. Before any data is used, ranks compare the headers
// of their calls, so that different operations, sizes or dtypes are an error on every rank and not garbage.
// The first failure ends the group: all of its later operations throw the same error.

#include <levin/core/tensor.h>
#include <levin/distributed/reduce_op.h>
#include <levin/distributed/store.h>

#include <array>
#include <atomic>
#include <exception>

namespace levin::distributed {

/// A handle on an asynchronous operation; copies refer to the same one.
class Work {
 public:
  struct State;
  Work() = default;  ///< a completed operation
  /// For implementations of ProcessGroup, which complete the operation through its state.
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  /// True after success and after an error; does not wait.
  bool is_completed() const;
  /// Returns when the operation is done. Throws its error, or CollectiveTimeout if `timeout` expires first (the
  /// operation goes on). With "nccl" and no timeout the host does not wait; instead, work that this thread later queues
  /// on the current stream waits for the operation. A barrier is always waited for on the host.
  void wait(std::optional<Duration> timeout = std::nullopt) const;
  /// Returns the operation's error; null while it runs and after success.
  std::exception_ptr exception() const;

 private:
  std::shared_ptr<State> state_;
};

/// A collective operation with checked arguments, as implementations of ProcessGroup get it.
struct Collective {
  /// The operations, which the methods of ProcessGroup describe.
  enum class Kind : std::uint8_t {
    all_reduce,
    reduce,
    broadcast,
    all_gather,
    reduce_scatter,
    all_to_all,
    gather,
    scatter,
    barrier,
    send,
    recv
  };
  Kind kind{};                  ///< the operation
  Tensor output{};              ///< written; also read by all_reduce, reduce and broadcast
  Tensor input{};               ///< read; undefined where output is read instead
  ReduceOp op = ReduceOp::sum;  ///< of all_reduce, reduce and reduce_scatter
  int root = 0;                 ///< rank in the group; of send and recv: the peer
  int tag = 0;                  ///< of send and recv
  /// Of all_to_all, by rank: numbers of elements to receive, and to send.
  std::vector<int64_t> output_splits{}, input_splits{};
};
/// Returns the name of the method: "all_reduce".
std::string to_string(Collective::Kind kind);

/// Numbers of elements that all_to_all receives from each rank (`output_splits`) and sends to each rank
/// (`input_splits`). Empty: equal parts.
struct AllToAllOptions {
  std::vector<int64_t> output_splits{};
  std::vector<int64_t> input_splits{};
};

/// Some ranks of a job that communicate with each other; make_process_group() makes the group of all.
///
/// Ranks are those within the group. Tensors are contiguous and of any dtype; only their numbers of elements matter,
/// not their shapes. Invalid arguments throw ShapeError, DTypeError or ValueError at the call.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual std::string name() const = 0;  ///< "gloo", "nccl", "cpu:gloo,cuda:nccl", "single"
  /// This process's rank in the group, and the number of ranks.
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// The members' ranks in the world.
  const std::vector<int>& ranks() const { return ranks_; }

  /// Replaces every rank's `t` by the reduction over all ranks.
  [[nodiscard]] Work all_reduce(const Tensor& t, ReduceOp op = ReduceOp::sum);
  /// As all_reduce, on `root` only; the contents of `t` on other ranks are undefined afterwards.
  [[nodiscard]] Work reduce(const Tensor& t, int root, ReduceOp op = ReduceOp::sum);
  /// Copies `t` of `root` to all ranks.
  [[nodiscard]] Work broadcast(const Tensor& t, int root);
  /// Concatenates the inputs of all ranks in output, which has size() times the input's elements.
  [[nodiscard]] Work all_gather(const Tensor& output, const Tensor& input);
  /// Reduces the input, which has size() times the output's elements; rank r gets part r.
  [[nodiscard]] Work reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum);
  /// Sends part r of the input to rank r, and receives part r of the output from it.
  [[nodiscard]] Work all_to_all(const Tensor& output, const Tensor& input, const AllToAllOptions& options = {});
  /// As all_gather, on `root` only; other ranks pass an undefined output.
  [[nodiscard]] Work gather(const Tensor& output, const Tensor& input, int root);
  /// Sends part r of the root's input to rank r; other ranks pass an undefined input.
  [[nodiscard]] Work scatter(const Tensor& output, const Tensor& input, int root);
  /// Sends a message to one rank, and receives one. Messages between two ranks with the same tag arrive in the order of
  /// their calls.
  [[nodiscard]] Work send(const Tensor& t, int to, int tag = 0);
  [[nodiscard]] Work recv(const Tensor& t, int from, int tag = 0);
  /// Completes when all ranks have called it.
  [[nodiscard]] Work barrier();

  /// Returns an uninitialised tensor for operations of this group. If its ranks share a host, all of them can access
  /// the memory ("symmetric memory"): all_reduce, reduce_scatter and all_gather then work in place, without copies
  /// between ranks. Otherwise, and for other devices, it is an ordinary tensor. The first call is a collective,
  /// which all ranks of the group make with the same arguments.
  virtual Tensor shared_empty(const Shape& sizes, const TensorOptions& options = {});

  /// Returns a group of some of these ranks, in that order, or null on ranks left out. All ranks of this group must
  /// call it with the same arguments.
  virtual std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& ranks) = 0;
  /// True if new_group() has left out ranks on the way to this group.
  bool is_part_of_world() const { return part_of_world_; }
  /// Number of operations of this kind that this rank has begun in this group.
  int64_t begun(Collective::Kind kind) const { return begun_[static_cast<std::size_t>(kind)]; }
  /// Reports that this rank has failed: on all ranks, every group that includes it throws RankLost with `reason`.
  virtual void abort(const std::string& reason) = 0;

  /// Time limit of one operation.
  Duration timeout() const { return timeout_; }
  void set_timeout(Duration timeout) { timeout_ = timeout; }

 protected:
  /// `ranks` are the members' ranks in the world, of which this process is number `rank`.
  ProcessGroup(int rank, std::vector<int> ranks, Duration timeout)
      : rank_(rank), ranks_(std::move(ranks)), timeout_(timeout) {}
  /// Begins a checked operation, in this group or in another one to which it is passed on.
  virtual Work begin(Collective collective) = 0;
  static Work begin_on(ProcessGroup& other, Collective collective) { return other.begin(std::move(collective)); }
  /// Throws ValueError for ranks that do not exist or appear twice.
  void check_members(const std::vector<int>& ranks) const;
  /// Marks a group that new_group() has made as a part of the world if it leaves out ranks.
  std::shared_ptr<ProcessGroup> as_part(std::shared_ptr<ProcessGroup> made) const;

 private:
  void check_rank(const char* operation, int rank) const;
  Work start(Collective collective);

  int rank_;
  std::vector<int> ranks_;
  Duration timeout_;
  bool part_of_world_ = false;
  std::array<std::atomic<int64_t>, 11> begun_{};  // by kind
};

/// While it lives, operations that this thread begins in groups of several ranks throw UsageError: for code that one
/// rank runs alone, which would wait for the others.
class NoCollectives {
 public:
  NoCollectives();
  ~NoCollectives();
  NoCollectives(const NoCollectives&) = delete;
  NoCollectives& operator=(const NoCollectives&) = delete;

 private:
  bool before_;
};

/// Arguments of make_process_group. All ranks must have called join() on the store.
struct GroupOptions {
  std::shared_ptr<Store> store{};      ///< not needed for a single rank
  int rank = 0;                        ///< of this process, in the world
  int world_size = 1;                  ///< number of ranks
  Duration timeout = kDefaultTimeout;  ///< of one operation
  /// Transport of "gloo": "auto" (shared memory where all ranks of a group are on one host, else TCP), "tcp" or
  /// "shared". Empty: the variable LEVIN_TRANSPORT, or auto. Where ranks differ, all use TCP.
  std::string transport{};
  /// Latency that "gloo" adds to every message, to simulate a slow network. The same on all ranks, which share a host.
  Duration latency{};
  /// CUDA device of this rank with "nccl"; default: the current device.
  std::optional<int> device{};
  /// Algorithm of "nccl": "ring", whose order of summation is known, "tree", or "auto" (NCCL's choice by size and
  /// machine). It sets NCCL_ALGO, unless that is set, before the first communicator; NCCL reads it once per process.
  std::string nccl_algo = "ring";
};

/// Makes the group of all ranks:
/// - "single": one rank, without communication;
/// - "gloo": shared memory or TCP; tensors of other devices are copied through the host;
/// - "nccl": tensors of the rank's CUDA device, from device to device. All types are moved and all but int16 reduced;
/// - "cpu:gloo,cuda:nccl": both, each for the tensors of its device; barriers use gloo.
/// Throws ValueError for other names and for "nccl" in a build without CUDA, DeviceError where the device or NCCL is
/// missing, StoreError and RankLost where the other ranks cannot be reached.
std::shared_ptr<ProcessGroup> make_process_group(const std::string& backend, const GroupOptions& options = {});

}  // namespace levin::distributed
