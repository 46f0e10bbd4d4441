#pragma once
// Checks gradients against finite differences.

#include <levin/core/tensor.h>

#include <functional>
#include <string>

namespace levin {

/// A function of a list of tensors.
using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Tolerances and step size of gradcheck, with PyTorch's defaults.
struct GradcheckOptions {
  double eps = 1e-6;   ///< step of the central differences
  double atol = 1e-5;  ///< allowed difference, absolute
  double rtol = 1e-3;  ///< allowed difference in addition, relative to the finite difference
  /// Compares the slope along one random direction of each input and one of the outputs, instead of every element of
  /// the Jacobian: two evaluations and one backward for each input.
  bool fast_mode = false;
};

/// Compares the full Jacobian of `f` (float64 inputs that require grad) computed by backward with the one computed by
/// central differences. Returns an empty string if they agree and some gradient is not zero, else a description of the
/// difference: input, output, element, both values. If both Jacobians are all zero the check fails, since it proves
/// nothing.
std::string gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
/// Checks the gradient function in the same way, with random output gradients, and thus second derivatives. A function
/// that is linear in its inputs passes because of the random output gradients.
std::string gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

}  // namespace levin
