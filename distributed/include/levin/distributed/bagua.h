#pragma once
// Bagua's relaxations of data parallelism: 8-bit communication, decentralised training and asynchronous averaging. An
// independent implementation, which does not link Bagua.
// S. Gan et al., "BAGUA: Scaling up Distributed Learning with System Relaxations" (VLDB 2021).

#include <levin/core/duration.h>
#include <levin/core/state_dict.h>
#include <levin/distributed/comm_hooks.h>

namespace levin::distributed {

// --- 8-bit communication

/// Rows of numbers quantised to levels 0 to 255 between the minimum and the maximum of each row.
struct ByteRows {
  Tensor levels;  ///< (rows, n) uint8
  Tensor ranges;  ///< (rows, 2) float32: the minimum, and the maximum minus the minimum
};
/// Rounds each number of `rows` (rows, n), a floating type with n > 0, to the nearest level. The error is at most 1/510
/// of the row's range, plus the rounding of float32. A row that holds a number that is not finite dequantises to
/// numbers that are all not finite.
ByteRows quantize_rows(const Tensor& rows);
/// Returns (rows, n) float32.
Tensor dequantize_rows(const ByteRows& rows);

/// ByteGrad: averages a bucket with 8 bits an element. Rank r receives part r of all ranks' quantised buckets, averages
/// them and sends the quantised average to all ranks, which all get the same bits. Each part has its own range: the
/// error is at most 1/255 of the mean over the ranks of the part's ranges, plus the rounding of float32. With one rank
/// it does nothing.
CommStages bytegrad_hook(ProcessGroup& group, const GradBucket& bucket);

/// ByteGrad between machines: within each machine, gradients are summed and broadcast at full precision. `machine`
/// holds the ranks of this machine. `leaders` holds the first rank of each machine and is null on the other ranks.
struct ByteGradByMachine {
  std::shared_ptr<ProcessGroup> machine{};
  std::shared_ptr<ProcessGroup> leaders{};
  /// The communication hook: see CommHook.
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;
};

/// Runs a hook on the current gradients of these parameters, with one bucket for each dtype and device. A missing
/// gradient counts as zero. Must be called on all ranks.
void exchange_gradients(ProcessGroup& group, const std::vector<Parameter>& parameters, const CommHook& hook);

// --- replicas with different weights

/// Returns the average of all ranks' weights or buffers: x0 + sum over r of (xr - x0) / ranks, in the order of the
/// ranks. All ranks get the same bits, and the average of equal replicas has their bits. 16-bit numbers are averaged in
/// float32; tensors that are not floating are rank 0's. Must be called on all ranks, with the same names, sizes and
/// types. Decentralised training is proven to converge in this average (X. Lian et al., below).
StateDict consensus(ProcessGroup& group, const StateDict& replica);

// --- decentralised training

/// The ranks whose weights PeerAverage averages in a step.
enum class Peers : std::uint8_t {
  all,       ///< averages over all ranks
  shift_one  ///< averages pairs: a rank of the lower half with one of the upper half, the next one in every step
};

/// Decentralised training at full precision: before each optimizer step, which uses this rank's own gradients, the
/// weights become averages of the weights that this rank and its peers had at the start of backward (X. Lian et al.,
/// "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017). Replicas differ.
class PeerAverage {
 public:
  /// Must be called on all ranks, with the same `peers`. Throws ValueError for shift_one with an odd number of ranks
  /// above 1.
  explicit PeerAverage(std::shared_ptr<ProcessGroup> group, Peers peers = Peers::all);
  ~PeerAverage();
  PeerAverage(const PeerAverage&) = delete;
  PeerAverage& operator=(const PeerAverage&) = delete;

  /// Begins to exchange the current weights; until finish() they may be read but not written.
  void begin(const std::vector<Parameter>& weights);
  /// Sets the weights to the averages. Calls begin() first if that has not been done.
  void finish(const std::vector<Parameter>& weights);
  /// Returns the partner of `rank` in a step of shift_one.
  static int peer(int rank, int size, int64_t step);

  /// Number of exchanges so far. It determines the peer, so a resumed run restores it.
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }

 private:
  struct Part;
  std::shared_ptr<ProcessGroup> group_;
  Peers peers_;
  int64_t steps_ = 0;
  std::vector<Part> parts_;  // in flight
};

/// Decentralised training in 8 bits on a ring: each rank keeps copies of its neighbours' weights, and after the
/// optimizer step sends them the quantised change of its own weights:
///
///   change = x + left / 3 + right / 3 - 5 / 3 own,   own += Q(change)
///
/// where x is the result of the step on `own`. The neighbours add the same Q(change) to their copies, which stay
/// bit-identical. Every parameter has its own range. Without Q the result is x + (left + right - 2 own) / 3, with
/// weights of one third each (H. Tang et al., "Communication Compression for Decentralized Training", NeurIPS 2018,
/// DCD-PSGD). Replicas differ.
class RingDifferences {
 public:
  /// Makes a group of the same ranks for the exchanges, so it must be called on all ranks.
  explicit RingDifferences(std::shared_ptr<ProcessGroup> group);
  /// Sends the current weights to the neighbours. Called on all ranks before the first step; later calls do nothing.
  void meet(const std::vector<Parameter>& weights);
  /// Exchanges the quantised changes. Called after each optimizer step.
  void exchange(const std::vector<Parameter>& weights);

 private:
  int left() const;
  int right() const;

  std::shared_ptr<ProcessGroup> group_;
  std::vector<Tensor> own_, left_, right_;  // each like its parameter
};

// --- less waiting

/// Asynchronous model averaging: each rank steps on its own gradients, and from time to time the ranks average their
/// weights in the background. When an average arrives, the weights move by the difference between it and the weights
/// that were sent. Results depend on timing.
class AsyncAverage {
 public:
  /// Two averages begin at least `interval` apart. Makes a group of the same ranks for the averages, so it must be
  /// called on all ranks.
  AsyncAverage(std::shared_ptr<ProcessGroup> group, Duration interval);
  ~AsyncAverage();
  AsyncAverage(const AsyncAverage&) = delete;
  AsyncAverage& operator=(const AsyncAverage&) = delete;
  /// Applies an average that has arrived, and begins the next one if it is due. Does not wait.
  void after_step(const std::vector<Parameter>& weights);
  /// Called on all ranks after the last step or before a pause: every rank takes part in as many averages as the rank
  /// that began most, and all of them are applied.
  void settle(const std::vector<Parameter>& weights);
  /// Number of averages that this rank has begun.
  int64_t averages() const { return begun_; }

 private:
  struct Part;
  void begin(const std::vector<Parameter>& weights);
  void take_in(const std::vector<Parameter>& weights);

  std::shared_ptr<ProcessGroup> group_, background_;
  Duration interval_;
  double next_;              // when an average is due, in monotonic_seconds
  std::vector<Part> parts_;  // in flight
  int64_t begun_ = 0;
};

}  // namespace levin::distributed
