#pragma once
// Bagua's relaxations of data parallelism: fewer bits, fewer partners, less waiting. Our own implementation; Bagua
// itself is not linked.
// S. Gan et al., "BAGUA: Scaling up Distributed Learning with System Relaxations" (VLDB 2021).

#include <levin/core/state_dict.h>
#include <levin/distributed/comm_hooks.h>

#include <chrono>

namespace levin::distributed {

// --- eight bits

/// Numbers as levels 0 to 255 between the least and the greatest of their row.
struct ByteRows {
  Tensor levels;  ///< (rows, n) uint8
  Tensor ranges;  ///< (rows, 2) float32: the least, and how far the greatest is from it
};
/// Rounds each number of `rows` (rows, n), floating, n above 0, to the nearest level: an error of at most 1/510 of the
/// row's range, and of float32's rounding. A row with a number that is not finite comes back with none that is.
ByteRows quantize_rows(const Tensor& rows);
/// (rows, n) float32.
Tensor dequantize_rows(const ByteRows& rows);

/// ByteGrad: the average of a bucket in 8 bits an element. Rank r gets part r of all ranks' buckets quantised, averages
/// them and sends the average quantised to all, who all have the same bits. Each part has a range of its own: the error
/// is at most 1/255 of the mean over the ranks of the part's ranges, and float32's rounding. With one rank nothing
/// happens.
CommStages bytegrad_hook(ProcessGroup& group, const GradBucket& bucket);

/// The same between machines: inside of each, gradients are summed and shared with all their bits. `machine` has the
/// ranks of this one, `leaders` the first rank of each; it is null on the others.
struct ByteGradByMachine {
  std::shared_ptr<ProcessGroup> machine{};
  std::shared_ptr<ProcessGroup> leaders{};
  CommStages operator()(ProcessGroup& group, const GradBucket& bucket) const;
};

/// Runs a hook on the gradients of these parameters as they are, one bucket for each dtype and device. A missing
/// gradient counts as zero. All ranks call it.
void exchange_gradients(ProcessGroup& group, const std::vector<Parameter>& parameters, const CommHook& hook);

// --- replicas that differ

/// What all ranks' weights or buffers are on average: x0 + sum over r of (xr - x0) / ranks, in the order of the ranks,
/// with the same bits on all of them, and those of the replicas where these are the same. 16-bit numbers are averaged
/// in float32; what is no floating number is rank 0's. All ranks call, with the same names, sizes and types.
/// It is what decentralised training is proven to find (X. Lian et al., below).
StateDict consensus(ProcessGroup& group, const StateDict& replica);

// --- fewer partners

enum class Peers : std::uint8_t {
  all,       ///< the average of all ranks
  shift_one  ///< of two: the lower half of the ranks meets the upper half, in every step the next one of it
};

/// Decentralised training with full precision: before each step of the optimizer, which uses this rank's own gradients,
/// weights become averages of those that this rank and its peers had at the beginning of the backward (X. Lian et al.,
/// "Can Decentralized Algorithms Outperform Centralized Algorithms?", NeurIPS 2017). Replicas differ.
class PeerAverage {
 public:
  /// All ranks construct it alike. Throws ValueError for shift_one and an odd number of ranks above 1.
  explicit PeerAverage(std::shared_ptr<ProcessGroup> group, Peers peers = Peers::all);
  ~PeerAverage();
  PeerAverage(const PeerAverage&) = delete;
  PeerAverage& operator=(const PeerAverage&) = delete;

  /// Begins to exchange the weights as they are now; they may be read meanwhile, not written.
  void begin(const std::vector<Parameter>& weights);
  /// Weights become the averages; begins first where that was not done.
  void finish(const std::vector<Parameter>& weights);
  /// The partner of `rank` in a step of shift_one.
  static int peer(int rank, int size, int64_t step);

  /// Exchanges until now: they choose the peer, so a resumed run goes on with this number.
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
/// optimizer's step tells them, quantised, by how much its own shall change:
///
///   change = x + left / 3 + right / 3 - 5 / 3 own,   own += Q(change)
///
/// where x is what the step has made of `own`. Neighbours add the same Q(change) to their copies, which stay equal to
/// the bit. Every parameter has a range of its own. Without Q it is x + (left + right - 2 own) / 3: a third each
/// (H. Tang et al., "Communication Compression for Decentralized Training", NeurIPS 2018, DCD-PSGD). Replicas differ.
class RingDifferences {
 public:
  explicit RingDifferences(std::shared_ptr<ProcessGroup> group);
  /// Before the first step: all ranks tell their neighbours the weights as they are. Does nothing later.
  void meet(const std::vector<Parameter>& weights);
  /// After the optimizer's step.
  void exchange(const std::vector<Parameter>& weights);

 private:
  int left() const;
  int right() const;

  std::shared_ptr<ProcessGroup> group_;
  std::vector<Tensor> own_, left_, right_;  // each like its parameter
};

// --- less waiting

/// Asynchronous model averaging: each rank steps on its own gradients, and now and then the ranks average their weights
/// behind training's back. When an average arrives, weights move by the difference of it and what was sent. Results
/// depend on timing.
class AsyncAverage {
 public:
  /// An average begins at the earliest `interval` after the one before has begun.
  AsyncAverage(std::shared_ptr<ProcessGroup> group, std::chrono::duration<double, std::milli> interval);
  ~AsyncAverage();
  AsyncAverage(const AsyncAverage&) = delete;
  AsyncAverage& operator=(const AsyncAverage&) = delete;
  /// Takes in an average that has arrived, and begins the next one where it is time. Does not wait.
  void after_step(const std::vector<Parameter>& weights);
  /// All ranks call it, after the last step or before a pause: every rank takes part in as many averages as the one
  /// that has most, and all are taken in.
  void settle(const std::vector<Parameter>& weights);
  int64_t averages() const { return begun_; }

 private:
  struct Part;
  void begin(const std::vector<Parameter>& weights);
  void take_in(const std::vector<Parameter>& weights);

  std::shared_ptr<ProcessGroup> group_, background_;
  std::chrono::duration<double, std::milli> interval_;
  std::chrono::steady_clock::time_point next_;
  std::vector<Part> parts_;  // in flight
  int64_t begun_ = 0;
};

}  // namespace levin::distributed
