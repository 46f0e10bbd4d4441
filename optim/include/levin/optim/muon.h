#pragma once

#include <levin/optim/composed_optimizer.h>

namespace levin::optim {

struct MuonOptions {
  double lr = 1e-3;
  double weight_decay = 0.1;  ///< decoupled: applied to the parameter
  double momentum = 0.95;
  bool nesterov = true;
  double eps = 1e-7;
  int64_t ns_steps = 5;          ///< iterations of Newton and Schulz
  bool match_rms_adamw = false;  ///< scales the rate so that updates are as large as AdamW's
  bool maximize = false;
};

/// Steps by the momentum with its singular values brought near 1 (Jordan et al. 2024), which a Newton-Schulz iteration
/// of fifth degree computes in the parameter's type. Only for matrices: give biases, norms and embeddings to AdamW.
/// Throws ValueError for other parameters.
class Muon : public ComposedOptimizer {
 public:
  using Options = MuonOptions;
  explicit Muon(std::vector<ParamGroup> groups, const Options& options = {});
  explicit Muon(std::vector<Parameter> params, const Options& o = {}) : Muon(one_group(std::move(params)), o) {}
  explicit Muon(const std::vector<Tensor>& params, const Options& o = {}) : Muon(named(params), o) {}
  template <std::floating_point Rate>
  Muon(std::vector<Parameter> params, Rate lr) : Muon(std::move(params), Options{.lr = lr}) {}
  template <std::floating_point Rate>
  Muon(const std::vector<Tensor>& params, Rate lr) : Muon(params, Options{.lr = lr}) {}

 protected:
  void update(const ParamGroup& group, int64_t number, Values& values) const override;

 private:
  void require_matrices(const std::vector<ParamGroup>& groups) const;
};

}  // namespace levin::optim
