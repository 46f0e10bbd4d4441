#pragma once

#include <levin/core/owned_ptr.h>
#include <levin/optim/adam.h>

namespace levin::optim {

/// Options of QAdam, with Bagua's defaults.
struct QAdamOptions {
  double lr = 1e-3;            ///< learning rate
  int64_t warmup_steps = 100;  ///< number of plain Adam steps (1 or more) before the second moment is frozen
  Betas betas{};               ///< decay rates of both moments
  double eps = 1e-8;           ///< added to the denominator, the root of the second moment
  double weight_decay = 0.0;   ///< added to the gradient (L2)
};

/// Adam in two phases, for ranks that exchange quantized momentum (H. Tang et al., "1-bit Adam: Communication Efficient
/// Large-Scale Training with Adam's Convergence Speed", ICML 2021; S. Gan et al., "BAGUA", VLDB 2021).
///
/// The first warmup_steps are steps of Adam on averaged gradients. Then the second moment v is frozen, and each rank
/// computes its momentum m' = beta1 m + (1 - beta1) g from its own gradient and stores it there (to_momentum()). step()
/// takes the contents of the gradients, by then averaged over the ranks, as the new m. Without to_momentum() step()
/// computes m' itself:
///
///   param -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^warmup_steps)) + eps)
///
/// Bagua's implementation continues the bias correction of v with the step, so that the corrected v keeps shrinking.
class QAdam : public FusedOptimizer<kernels::AdamStepArgs> {
 public:
  using Options = QAdamOptions;
  /// Takes groups, or parameters that become one group. Throws ValueError as add_param_group() does.
  explicit QAdam(std::vector<ParamGroup> groups, const Options& options = {});
  explicit QAdam(std::vector<Parameter> params, const Options& o = {});
  explicit QAdam(const std::vector<Tensor>& params, const Options& o = {});
  ~QAdam() override;
  QAdam(QAdam&&) noexcept;

  bool is_elementwise() const override { return false; }
  /// True if the warm-up is over. Waits for the device if a loss scaler may have skipped steps.
  bool is_frozen() const;
  /// Replaces each gradient by the momentum computed from it; to be called after the warm-up and before a step.
  void to_momentum();

 protected:
  void step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) override;
  void check(const Settings& settings) const override;

 private:
  void frozen_step(const ParamGroup& group, const Parameter& parameter);
  void make_momentum(const ParamGroup& group, const Parameter& parameter);

  struct Made;
  OwnedPtr<Made> made_;
};

}  // namespace levin::optim
