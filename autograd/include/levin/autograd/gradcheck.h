#pragma once
// Gradients against finite differences.

#include <levin/core/tensor.h>

#include <functional>
#include <string>

namespace levin {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// Tolerances and step of gradcheck; PyTorch's defaults.
struct GradcheckOptions {
  double eps = 1e-6;
  double atol = 1e-5;
  double rtol = 1e-3;
};

/// Compares the full Jacobian of `f` (f64 inputs that require grad) by backward with the one by central differences.
/// Returns an empty text when they agree and a gradient is not zero everywhere, else what differs: input, output,
/// element, both values. An all-zero analytic and numeric Jacobian is refused, since it proves nothing.
std::string gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options = {});
/// The same for the gradient function itself, with random output gradients: second derivatives. A function that is
/// linear in its inputs passes through the random output gradients.
std::string gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                          const GradcheckOptions& options = {});

}  // namespace levin
