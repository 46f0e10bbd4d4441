#pragma once
// Gradient clipping, in place; called before the step.

#include <levin/core/state_dict.h>

namespace levin::optim {

/// Options of clip_grad_norm_().
struct ClipNormOptions {
  double norm_type = 2.0;           ///< p of the p-norm; infinity takes the largest magnitude
  bool error_if_nonfinite = false;  ///< throws ValueError for a norm that is NaN or infinite, and waits for the device
};

/// Scales all gradients by min(1, max_norm / (norm + 1e-6)), where `norm` is that of all gradients as one vector.
/// Returns the norm before scaling: 0-dim, of the first gradient's dtype and device; 0 without gradients. Parameters
/// without a gradient are ignored. A norm that is not finite makes the gradients NaN or 0, as in PyTorch.
Tensor clip_grad_norm_(const std::vector<Parameter>& parameters, double max_norm, const ClipNormOptions& options = {});
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipNormOptions& options = {});

/// Scales the gradients by min(1, max_norm / (total_norm + 1e-6)). `total_norm` (0-dim) is the known norm of all
/// gradients together, of which these may be a subset.
void clip_grads_with_norm_(const std::vector<Parameter>& parameters, double max_norm, const Tensor& total_norm);

/// Clamps every element of every gradient to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Parameter>& parameters, double clip_value);
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace levin::optim
