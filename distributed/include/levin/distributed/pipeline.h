#pragma once
// Pipeline parallelism: every rank of a group computes one stage of a network; micro-batches go from stage to stage.
// The schedule is 1F1B (Narayanan et al., PipeDream-2BW, 2021): behind a warm-up each rank takes one forward and one
// backward in turn, so that it keeps no more activations than there are stages from it to the end.

#include <levin/core/tensor.h>
#include <levin/distributed/process_group.h>
#include <levin/nn/module.h>

#include <functional>

namespace levin::distributed {

/// What a stage does next: forward or backward of one micro-batch.
struct PipelineAction {
  bool forward = true;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};
std::string to_string(const PipelineAction& action);  ///< "F0", "B3"

/// A stage's order of actions: min(stages - stage - 1, micro_batches) forwards to warm up, then forward and backward in
/// turn, then the backwards that are left. Throws ValueError.
std::vector<PipelineAction> one_f_one_b(int stage, int stages, int micro_batches);

/// Numbers of layers for each of `stages` stages, in their order: the largest stage has as few parameters as can be,
/// and the first ones take what they can. `parameters` has those of each layer. Throws ValueError for fewer layers than
/// stages.
std::vector<int64_t> balanced_stages(const std::vector<int64_t>& parameters, int stages);

struct PipelineOptions {
  /// Parts of a batch, ceil(rows / micro_batches) rows each, the last one smaller. With m of them and s equal stages,
  /// ranks idle (s - 1) / (m + s - 1) of a step.
  int micro_batches = 4;
  Device device = kCpu;  ///< where what comes from other stages lies
};

/// What a stage does in a step of one's own.
struct PipelineSteps {
  /// The stage's output for a micro-batch: `x` comes from the stage before, and is undefined on the first. The last
  /// stage's output is what its backward begins with.
  std::function<Tensor(int micro_batch, const Tensor& x)> forward;
  /// Runs backward from an output by what the next stage has given; an undefined gradient on the last.
  std::function<void(const Tensor& output, const Tensor& gradient)> backward;
};

/// How a rank has spent its steps so far, in seconds.
struct PipelineTimes {
  double computing = 0;  ///< in forward and backward of its stage
  double whole = 0;
  /// The part of the time in which it waited for other stages.
  double bubble() const { return whole > 0 ? 1.0 - computing / whole : 0.0; }
};

/// Stage number rank of group.size() stages:
///
///   Pipeline pipeline(my_part_of_the_net, group, {.micro_batches = 8});
///   optimizer.zero_grad();
///   Tensor loss = pipeline.step(x, y, cross_entropy);  // x counts on the first rank, y on the last
///   optimizer.step();                                  // each rank steps its own parameters
///
/// Gradients are those of the mean loss of the whole batch, added up over the micro-batches. What goes between two
/// stages is one floating tensor with the samples along its first dimension; it may have other sizes each time. Batch
/// norm normalises by the micro-batch. Optimizers and their clipping are the rank's own: a norm over all stages is the
/// root of the group's sum of squares.
class Pipeline {
 public:
  using Stage = std::function<Tensor(const Tensor& x)>;
  /// The mean loss of some samples.
  using Loss = std::function<Tensor(const Tensor& output, const Tensor& target)>;

  /// Throws ValueError for less than one micro-batch.
  Pipeline(Stage stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options = {});
  /// The module outlives this object.
  Pipeline(nn::Module& stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options = {});

  /// Forward and backward of a batch; all ranks call it. `x` (B, ...) is the first rank's, `target` (B, ...) the last
  /// one's, which computes the loss; the others' may be undefined. Gives the batch's loss, float64, on every rank.
  /// Throws ShapeError, on the last rank, where x and target have other numbers of rows, and what the group throws.
  Tensor step(const Tensor& x, const Tensor& target, const Loss& loss);
  /// Forward alone, in micro-batches, recording nothing. Gives the joined outputs on the last rank, on the others an
  /// undefined tensor; with `on_all` the outputs everywhere.
  Tensor forward(const Tensor& x, bool on_all = false);
  /// The schedule of a step with other work in it; as many micro-batches on all ranks.
  void run(int micro_batches, const PipelineSteps& steps);

  /// What the last step of this rank did, in its order.
  const std::vector<PipelineAction>& schedule() const { return schedule_; }
  /// The most micro-batches whose activations this rank has kept at a time.
  int most_alive() const { return most_alive_; }
  const PipelineTimes& times() const { return times_; }

 private:
  struct Kept;
  bool is_first() const { return group_->rank() == 0; }
  bool is_last() const { return group_->rank() == group_->size() - 1; }
  /// Rows of the first rank's batch, on all ranks.
  std::vector<int64_t> part_sizes(const Tensor& x);
  Tensor receive(int from, bool gradient) const;
  Tensor from_last(const Tensor& t) const;
  void send(const Tensor& t, int to, bool gradient);
  void finish_sends();
  template <class F>
  auto timed(const F& f);

  Stage stage_;
  std::shared_ptr<ProcessGroup> group_;
  PipelineOptions options_;
  std::vector<std::pair<Work, Tensor>> sends_;  // under way, with what they send
  std::vector<PipelineAction> schedule_;
  int most_alive_ = 0;
  PipelineTimes times_;
};

}  // namespace levin::distributed
