#pragma once
// Collective operations among the ranks of a group.
//
// Every operation begins at once and returns a Work; its tensors are whole, and may be touched again, after wait().
// All ranks of a group call the same operations in the same order. Before any data moves, neighbours compare what they
// are about to do, so that different operations, sizes or dtypes are an error on every rank instead of garbage.
// The first failure ends the group: all of its later operations throw the same error.

#include <levin/core/tensor.h>
#include <levin/distributed/reduce_op.h>
#include <levin/distributed/store.h>

#include <array>
#include <atomic>
#include <exception>

namespace levin::distributed {

/// A handle on an operation under way; copies name the same one.
class Work {
 public:
  struct State;
  Work() = default;  ///< complete
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  bool is_completed() const;
  /// Returns when the operation is done; throws what it failed with, or CollectiveTimeout when `timeout` is over first
  /// (the operation goes on). With "nccl" and no timeout the host does not wait, but the work that this thread queues
  /// on the current stream from then on does; only a barrier's end is waited for.
  void wait(std::optional<Milliseconds> timeout = std::nullopt) const;
  /// What it failed with; null while it runs and after success.
  std::exception_ptr exception() const;

 private:
  std::shared_ptr<State> state_;
};

/// What a group is asked to do, checked.
struct Collective {
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
  Kind kind{};
  Tensor output{};  ///< written; also read by all_reduce, reduce and broadcast
  Tensor input{};
  ReduceOp op = ReduceOp::sum;
  int root = 0;  ///< the peer of send and recv
  int tag = 0;
  std::vector<int64_t> output_splits{}, input_splits{};  ///< of all_to_all, in elements
};
std::string to_string(Collective::Kind kind);

/// Arguments of all_to_all: how many elements go to and come from each rank. Empty: equal parts.
struct AllToAllOptions {
  std::vector<int64_t> output_splits{};
  std::vector<int64_t> input_splits{};
};

/// Ranks here are those within the group. Tensors are contiguous and of any dtype; sizes count elements, shapes are
/// free. Arguments that no rank could accept throw ShapeError, DTypeError or ValueError at the call.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual std::string name() const = 0;  ///< "gloo", "nccl", "cpu:gloo,cuda:nccl", "single"
  int rank() const { return rank_; }
  int size() const { return static_cast<int>(ranks_.size()); }
  /// The members' ranks in the world.
  const std::vector<int>& ranks() const { return ranks_; }

  /// Every rank's `t` becomes the reduction over all.
  [[nodiscard]] Work all_reduce(const Tensor& t, ReduceOp op = ReduceOp::sum);
  /// The same on `root` only; what the others' `t` holds then is not defined.
  [[nodiscard]] Work reduce(const Tensor& t, int root, ReduceOp op = ReduceOp::sum);
  /// `t` of `root` is copied to all.
  [[nodiscard]] Work broadcast(const Tensor& t, int root);
  /// output (size() times the input's elements) becomes the inputs of all ranks, one after the other.
  [[nodiscard]] Work all_gather(const Tensor& output, const Tensor& input);
  /// input (size() times the output's elements) is reduced; rank r gets part r.
  [[nodiscard]] Work reduce_scatter(const Tensor& output, const Tensor& input, ReduceOp op = ReduceOp::sum);
  /// Part r of the input goes to rank r; part r of the output came from there.
  [[nodiscard]] Work all_to_all(const Tensor& output, const Tensor& input, const AllToAllOptions& options = {});
  /// As all_gather, on `root` only; the others give an undefined output.
  [[nodiscard]] Work gather(const Tensor& output, const Tensor& input, int root);
  /// Part r of the root's input goes to rank r; the others give an undefined input.
  [[nodiscard]] Work scatter(const Tensor& output, const Tensor& input, int root);
  /// A message to one rank. Messages between two ranks with one tag arrive in the order of their calls.
  [[nodiscard]] Work send(const Tensor& t, int to, int tag = 0);
  [[nodiscard]] Work recv(const Tensor& t, int from, int tag = 0);
  /// Complete when all ranks have called it.
  [[nodiscard]] Work barrier();

  /// An uninitialised tensor for operations of this group. Where its ranks share a host they all see the memory
  /// ("symmetric memory"): all_reduce, reduce_scatter and all_gather then work in place, without a copy from rank to
  /// rank. Elsewhere, and for other devices, it is an ordinary one. All ranks of the group call the first one alike.
  virtual Tensor shared_empty(const Shape& sizes, const TensorOptions& options = {});

  /// A group of some of these ranks, in that order. All ranks of this group call it alike; null for those left out.
  virtual std::shared_ptr<ProcessGroup> new_group(const std::vector<int>& ranks) = 0;
  /// Whether new_group() has left out ranks on the way to this group.
  bool is_part_of_world() const { return part_of_world_; }
  /// How many operations of this kind this rank has begun in this group.
  int64_t begun(Collective::Kind kind) const { return begun_[static_cast<std::size_t>(kind)]; }
  /// Says that this rank has failed: on all ranks, every group with this one throws RankLost with `reason`.
  virtual void abort(const std::string& reason) = 0;

  /// How long one operation may take.
  Milliseconds timeout() const { return timeout_; }
  void set_timeout(Milliseconds timeout) { timeout_ = timeout; }

 protected:
  ProcessGroup(int rank, std::vector<int> ranks, Milliseconds timeout)
      : rank_(rank), ranks_(std::move(ranks)), timeout_(timeout) {}
  /// Begins a checked operation.
  virtual Work begin(Collective collective) = 0;
  static Work begin_on(ProcessGroup& other, Collective collective) { return other.begin(std::move(collective)); }
  /// Throws ValueError for ranks that do not exist or stand twice.
  void check_members(const std::vector<int>& ranks) const;
  /// For new_group(): what it has made.
  std::shared_ptr<ProcessGroup> as_part(std::shared_ptr<ProcessGroup> made) const;

 private:
  void check_rank(const char* operation, int rank) const;
  Work start(Collective collective);

  int rank_;
  std::vector<int> ranks_;
  Milliseconds timeout_;
  bool part_of_world_ = false;
  std::array<std::atomic<int64_t>, 11> begun_{};  // by kind
};

/// What make_process_group needs to know. All ranks have called join() on the store.
struct GroupOptions {
  std::shared_ptr<Store> store{};  ///< not needed for a single rank
  int rank = 0;
  int world_size = 1;
  Milliseconds timeout = kDefaultTimeout;  ///< of one operation
  /// Of "gloo": "auto" (shared memory where all ranks of a group are on one host, else TCP), "tcp" or "shared". Empty:
  /// the variable LEVIN_TRANSPORT, or auto. Where ranks differ, all use TCP.
  std::string transport{};
  /// Of "gloo": every message arrives so much later, to see what a slow network does. The same on all ranks, which
  /// share a host.
  Milliseconds latency{0};
  /// Of "nccl": the CUDA device of this rank; the current one where nothing is said.
  std::optional<int> device{};
  /// Of "nccl": "ring", by which the order of sums is known, "tree", or "auto" (NCCL's choice by size and machine). It
  /// sets NCCL_ALGO, unless that is set, before the first communicator; NCCL reads it once a process.
  std::string nccl_algo = "ring";
};

/// The group of all ranks:
/// - "single": one rank, nothing moves;
/// - "gloo": shared memory or TCP; tensors of other devices go through the host;
/// - "nccl": tensors of the rank's CUDA device, from device to device. All types are moved and all but int16 reduced;
/// - "cpu:gloo,cuda:nccl": the two, each for the tensors of its device. A barrier is that of gloo.
/// Throws ValueError for other names and for "nccl" in a build without CUDA, DeviceError where there is no such device
/// or no NCCL, StoreError and RankLost where the others cannot be reached.
std::shared_ptr<ProcessGroup> make_process_group(const std::string& backend, const GroupOptions& options = {});

}  // namespace levin::distributed
