#pragma once
// The captured parts of a fit's steps.

#include <levin/autograd/captured_step.h>
#include <levin/trainer/module.h>

#include <deque>
#include <functional>
#include <optional>

namespace levin {

/// The gradients of parameters at one time.
class Gradients {
 public:
  Gradients() = default;
  explicit Gradients(const std::vector<Parameter>& parameters);
  /// True if the parameters have these very tensors now, but for forgotten ones.
  bool are_set() const;
  /// Gives them to the parameters again.
  void set() const;
  /// Forgets those that differ from the other's, which has the same parameters.
  void keep_equal(const Gradients& other);
  bool empty() const { return of_.empty(); }

 private:
  struct One {
    Parameter parameter;
    Tensor gradient;
    bool kept = true;
  };
  std::vector<One> of_;
};

/// Forward and backward of the batches of one shape at one place of an accumulation window.
struct CapturedPass {
  CapturedPass(const Batch& like, double window_nominal);

  Batch batch;     ///< the inputs that the kernels read
  double nominal;  ///< nominal weight of the window, 0 for its first batch
  StepOutput output;
  double weight = 0;
  Tensor loss;                    ///< scaled
  std::vector<LogPart> logged{};  ///< values that training_step logs; their tensors get new values by each replay
  std::optional<CapturedStep> forward{}, backward{};
  Gradients added_to{};  ///< gradients that must be set before, as backward adds to them
  Gradients made{};      ///< gradients that are set after backward

  /// True for batches of these shapes and types at this place.
  bool fits(const Batch& other, double window_nominal) const;
  /// Copies the batch into the inputs.
  void load(const Batch& other);
};

/// The captured work of one epoch. The second batch of a shape and place is captured: the first one runs as usual, and
/// creates state that only a first step creates.
class StepCapture {
 public:
  /// Throws UsageError for modules, strategies and precisions whose steps cannot be captured.
  static void check(const LevinModule& module, Strategy& strategy, const PrecisionPlugin& precision);
  /// Throws UsageError if a parameter has a row-wise gradient.
  static void refuse_rows(const std::vector<Parameter>& parameters);

  void begin_epoch(Optimizers& optimizers);
  /// Returns the pass that can be replayed for the batch now; null if there is none.
  CapturedPass* find(const Batch& batch, double nominal);
  /// Returns a new pass for the batch; null if none is to be captured now.
  CapturedPass* begin(const Batch& batch, double nominal);
  /// Forgets the pass that began last.
  void drop_last() { passes_.pop_back(); }
  /// Runs the optimizer's part of a step: captured if the gradients are those of a pass.
  void run_step(const std::vector<Parameter>& parameters, const std::function<void()>& work);

 private:
  static constexpr std::size_t kMost = 8;  ///< captured passes and shapes that are remembered
  struct Step {
    Gradients gradients;
    CapturedStep captured;
  };
  std::deque<CapturedPass> passes_;  ///< a deque, as its elements are referred to
  std::deque<CapturedPass> seen_;    ///< shapes only
  std::vector<Step> steps_;
  bool warm_ = false;  ///< the optimizer has stepped, so its state exists
};

}  // namespace levin
