#pragma once

#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

/// Options of Muon, with PyTorch's defaults.
struct MuonOptions {
  double lr = 1e-3;              ///< times sqrt(max(1, rows / columns)), or see match_rms_adamw
  double weight_decay = 0.1;     ///< decoupled: multiplies the parameter by 1 - lr * weight_decay
  double momentum = 0.95;        ///< decay rate of the average gradient, in [0, 1)
  bool nesterov = true;          ///< steps by (1 - momentum) * gradient + momentum * average
  double eps = 1e-7;             ///< least norm by which the direction is divided
  int64_t ns_steps = 5;          ///< iterations of Newton and Schulz, below 100
  bool match_rms_adamw = false;  ///< times 0.2 sqrt(max(rows, columns)) instead: updates as large as AdamW's
  bool maximize = false;         ///< steps along the gradient instead of against it
};

/// Steps by the momentum with its singular values brought near 1 (Jordan et al. 2024), which a Newton-Schulz iteration
/// of fifth degree computes in the parameter's type (16-bit ones in float32). Only for matrices: give biases, norms and
/// embeddings to AdamW. The constructors throw ValueError for other parameters.
class Muon : public ComposedOptimizer {
 public:
  using Options = MuonOptions;
  /// Takes groups, or parameters that become one group; options, or the learning rate alone. Throws ValueError as
  /// add_param_group() does.
  explicit Muon(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Muon(std::vector<Parameter> params, const Options& o = {});
  explicit Muon(const std::vector<Tensor>& params, const Options& o = {});
  Muon(std::vector<Parameter> params, std::floating_point auto lr) : Muon(std::move(params), Options{.lr = lr}) {}
  Muon(const std::vector<Tensor>& params, std::floating_point auto lr) : Muon(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;

 private:
  void require_matrices(const std::vector<ParamGroup>& groups) const;
};

}  // namespace levin::optim
