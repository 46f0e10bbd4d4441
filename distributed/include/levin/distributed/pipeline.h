#pragma once
// Pipeline parallelism: every rank of a group computes one stage of a network, and micro-batches pass from stage to
// stage. The schedule is 1F1B (Narayanan et al., PipeDream-2BW, 2021): after a warm-up each rank alternates between one
// forward and one backward, so that it keeps activations of no more micro-batches than there are stages from it to the
// end.

#include <levin/core/tensor.h>
#include <levin/distributed/process_group.h>
#include <levin/nn/module.h>

#include <functional>
#include <type_traits>

namespace levin::distributed {

/// One action of a stage: forward or backward of the micro-batch with the index `micro_batch`.
struct PipelineAction {
  bool forward = true;
  int micro_batch = 0;
  bool operator==(const PipelineAction&) const = default;
};
std::string to_string(const PipelineAction& action);  ///< "F0", "B3"

/// Returns a stage's order of actions: min(stages - stage - 1, micro_batches) forwards as warm-up, then forward and
/// backward in turn, then the remaining backwards. Throws ValueError for a stage or counts out of range.
std::vector<PipelineAction> one_f_one_b(int stage, int stages, int micro_batches);

/// Returns the number of layers of each of `stages` stages, such that the largest stage has as few parameters as
/// possible; earlier stages take as many layers as that allows. `parameters` holds the number of parameters of each
/// layer. Throws ValueError for fewer layers than stages.
std::vector<int64_t> balanced_stages(const std::vector<int64_t>& parameters, int stages);

/// Options of Pipeline; micro_batches are the same on all ranks.
struct PipelineOptions {
  /// A batch is split into parts of ceil(rows / micro_batches) rows, the last one smaller. With m of them and s equal
  /// stages, ranks idle for (s - 1) / (m + s - 1) of a step.
  int micro_batches = 4;
  Device device = kCpu;  ///< device of the tensors received from other stages
};

/// The computation of a stage in a user-defined step.
struct PipelineSteps {
  /// Returns the stage's outputs for a micro-batch. `inputs` come from the previous stage; the first one gets none.
  /// Backward begins with the only output of the last stage.
  std::function<std::vector<Tensor>(int micro_batch, const std::vector<Tensor>& inputs)> forward;
  /// Runs backward from the outputs; by default with levin::backward. `gradients` are those of the outputs of floating
  /// or complex types, as the next stage sent them; there are none on the last stage.
  std::function<void(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients)> backward{};
};

/// The layers of a stage: a function of one tensor that returns one, or of a std::vector<Tensor> that returns one.
class PipelineStage : public std::function<std::vector<Tensor>(const std::vector<Tensor>& inputs)> {
 public:
  /// Takes a function of either kind. That of one tensor throws ShapeError when the stage before sends several.
  template <class F>
  requires std::is_invocable_r_v<std::vector<Tensor>, F&, const std::vector<Tensor>&>
  PipelineStage(F f)  // NOLINT: implicit
      : function(std::move(f)) {}
  template <class F>
  requires std::is_invocable_r_v<Tensor, F&, const Tensor&>
  PipelineStage(F f)  // NOLINT: implicit
      : function([f = std::move(f)](const std::vector<Tensor>& inputs) mutable -> std::vector<Tensor> {
          return {f(only(inputs))};
        }) {}

 private:
  static const Tensor& only(const std::vector<Tensor>& inputs);  // throws ShapeError for several
};

/// Time that a rank has spent in its steps so far, in seconds.
struct PipelineTimes {
  double computing = 0;  ///< in forward and backward of its stage
  double whole = 0;      ///< in Pipeline::step and run, with waiting
  /// Fraction of the time in which the rank waited for other stages.
  double bubble() const { return whole > 0 ? 1.0 - computing / whole : 0.0; }
};

/// Runs stage rank() of group.size() stages:
///
///   Pipeline pipeline(my_part_of_the_net, group, {.micro_batches = 8});
///   optimizer.zero_grad();
///   Tensor loss = pipeline.step(x, y, cross_entropy);  // x is read on the first rank, y on the last
///   optimizer.step();                                  // each rank steps its own parameters
///
/// Gradients are those of the mean loss of the whole batch, accumulated over the micro-batches. A stage sends one or
/// several tensors to the next one, which sends back the gradients of those of floating and complex types. Sizes may
/// differ between micro-batches. The last stage returns one tensor with the samples along its first dimension. Batch
/// norm normalises by the micro-batch. Each rank steps and clips its own parameters: the norm over all stages is the
/// root of the group's sum of squares.
class Pipeline {
 public:
  /// The layers of a rank.
  using Stage = PipelineStage;
  /// Returns the mean loss of some samples.
  using Loss = std::function<Tensor(const Tensor& output, const Tensor& target)>;

  /// `stage` may be a function of one tensor. Throws ValueError for fewer than one micro-batch.
  Pipeline(Stage stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options = {});
  /// The module must outlive this object.
  Pipeline(nn::Module& stage, std::shared_ptr<ProcessGroup> group, const PipelineOptions& options = {});

  /// Forward and backward of a batch. `x` (B, ...) is read on the first rank and `target` (B, ...) on the last, which
  /// computes the loss; both may be undefined elsewhere. Returns the batch's loss, float64, on every rank. Throws
  /// ShapeError, on the last rank, where x and target differ in rows or the stage returns several tensors, and what the
  /// group throws. Must be called on all ranks.
  Tensor step(const Tensor& x, const Tensor& target, const Loss& loss);
  /// Forward only, in micro-batches and without recording. Returns the concatenated outputs on the last rank, and an
  /// undefined tensor on the others; with `on_all` the outputs on every rank.
  Tensor forward(const Tensor& x, bool on_all = false);
  /// Runs the schedule of a step with a user-defined computation; all ranks pass the same number of micro-batches.
  void run(int micro_batches, const PipelineSteps& steps);

  /// The actions of this rank's last step, in their order.
  const std::vector<PipelineAction>& schedule() const { return schedule_; }
  /// The maximum number of micro-batches whose activations this rank kept at a time.
  int most_alive() const { return most_alive_; }
  /// How long this rank has computed and waited so far.
  const PipelineTimes& times() const { return times_; }

 private:
  struct Kept;
  bool is_first() const { return group_->rank() == 0; }
  bool is_last() const { return group_->rank() == group_->size() - 1; }
  /// Numbers of rows of the first rank's micro-batches, on all ranks.
  std::vector<int64_t> part_sizes(const Tensor& x);
  std::vector<Tensor> receive(int from, bool gradient) const;
  Tensor from_last(const Tensor& t) const;
  void send(const std::vector<Tensor>& tensors, int to, bool gradient);
  void finish_sends();
  template <class F>
  auto timed(const F& f);

  Stage stage_;
  std::shared_ptr<ProcessGroup> group_;
  PipelineOptions options_;
  std::vector<std::pair<Work, Tensor>> sends_;  // in flight, with the tensors that they send
  std::vector<PipelineAction> schedule_;
  int most_alive_ = 0;
  PipelineTimes times_;
};

}  // namespace levin::distributed
