#pragma once

#include <levin/core/owned_ptr.h>
#include <levin/optim/adam.h>

namespace levin::optim {

struct QAdamOptions {
  double lr = 1e-3;
  int64_t warmup_steps = 100;  ///< of plain Adam, after which the second moment stays as it is
  Betas betas{};
  double eps = 1e-8;
  double weight_decay = 0.0;  ///< added to the gradient (L2)
};

/// Adam in two parts, made for ranks that exchange momentum in few bits (H. Tang et al., "1-bit Adam: Communication
/// Efficient Large-Scale Training with Adam's Convergence Speed", ICML 2021; S. Gan et al., "BAGUA", VLDB 2021).
///
/// The first warmup_steps are Adam's, on averaged gradients. Then the second moment v is frozen, and each rank makes
/// its momentum m' = beta1 m + (1 - beta1) g of its own gradient (to_momentum()). What is left in the gradients, their
/// average over the ranks, is what step() takes as the new m. Without to_momentum() it makes m' itself:
///
///   param -= lr / (1 - beta1^step) * m / (sqrt(v / (1 - beta2^warmup_steps)) + eps)
///
/// Bagua's own correction of v goes on with the step, which makes the frozen v ever smaller.
class QAdam : public Optimizer {
 public:
  using Options = QAdamOptions;
  explicit QAdam(std::vector<Parameter> params, const Options& options = {});
  explicit QAdam(const std::vector<Tensor>& params, const Options& options = {}) : QAdam(named(params), options) {}
  explicit QAdam(std::vector<ParamGroup> groups, const Options& options = {});
  ~QAdam() override;
  QAdam(QAdam&&) noexcept;

  /// Whether the warm-up is over. Waits for the device where a loss scaler may have skipped steps.
  bool is_frozen() const;
  /// After the warm-up, before a step: gradients become the momentum that they make.
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
