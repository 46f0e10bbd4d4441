#pragma once
// Gradient clipping, in place; called before the step.

#include <levin/core/state_dict.h>

namespace levin::optim {

struct ClipNormOptions {
  double norm_type = 2.0;           ///< may be infinity
  bool error_if_nonfinite = false;  ///< throws ValueError for a norm that is NaN or infinite
};
/// Scales all gradients by max_norm / (norm + 1e-6) when their total norm exceeds max_norm; returns the norm before
/// scaling (0-dim, of the gradients' dtype). Parameters without a gradient are ignored.
Tensor clip_grad_norm_(const std::vector<Parameter>& parameters, double max_norm, const ClipNormOptions& options = {});
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipNormOptions& options = {});

/// Clips by a norm that is already known: `total_norm` (0-dim) is the norm of all gradients together, of which these
/// may be a subset.
void clip_grads_with_norm_(const std::vector<Parameter>& parameters, double max_norm, const Tensor& total_norm);

/// Clamps every element of every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Parameter>& parameters, double clip_value);
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace levin::optim
