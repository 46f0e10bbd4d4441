#pragma once

#include <levin/optim/fused_optimizer.h>

namespace levin::optim {

/// How LBFGS finds the length of an iteration along its direction: `none` takes the rate `lr`, `strong_wolfe` searches
/// one that lowers the loss and its slope enough (strong Wolfe conditions; Nocedal & Wright, algorithms 3.5 and 3.6).
enum class LineSearch { none, strong_wolfe };

/// Options of LBFGS, with PyTorch's defaults.
struct LBFGSOptions {
  double lr = 1.0;                               ///< length of an iteration, or the first that the line search tries
  int64_t max_iter = 20;                         ///< iterations of one step
  std::optional<int64_t> max_eval{};             ///< calls of the closure in one step; default: 1.25 max_iter
  double tolerance_grad = 1e-7;                  ///< ends a step when no element of the gradient is larger
  double tolerance_change = 1e-9;                ///< ends a step when the parameters or the loss change by less
  int64_t history_size = 100;                    ///< iterations remembered, each with two tensors per parameter
  LineSearch line_search_fn = LineSearch::none;  ///< how the length of an iteration is found
};

/// The limited-memory method of Broyden, Fletcher, Goldfarb and Shanno (Liu & Nocedal 1989). A step calls its closure
/// several times, so it needs one:
///
///   lbfgs.step([&] {
///     lbfgs.zero_grad();
///     Tensor loss = mse_loss(net(x), y);
///     loss.backward();
///     return loss;
///   });
///
/// All parameters are one group; a second one throws ValueError. step() without a closure throws StateError, a row-wise
/// gradient GradError. The host waits for the device in every iteration.
class LBFGS : public Optimizer {
 public:
  using Options = LBFGSOptions;
  using Optimizer::step;
  explicit LBFGS(std::vector<Parameter> params, const Options& options = {});
  explicit LBFGS(const std::vector<Tensor>& params, const Options& o = {});
  /// Runs up to max_iter iterations and returns the loss before them.
  Tensor step(const Closure& closure) override;

 protected:
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
  void check(const Settings& settings) const override;

 private:
  struct Curvature;
  struct Point;

  Tensor flat_gradient() const;
  void move_parameters(const Tensor& by, double rate) const;
  Point search(const Closure& evaluate, const Tensor& direction, double rate, const Point& start,
               int64_t& evaluations) const;
  Tensor flat_slot(std::size_t slot);
  void set_flat_slot(std::size_t slot, const Tensor& values);
  Curvature read_curvature();
  void write_curvature(const Curvature& curvature);
};

}  // namespace levin::optim
