#pragma once
// Calling a module with other tensors in place of its own parameters and buffers.

#include <levin/nn/forward.h>
#include <levin/nn/module.h>

namespace levin::nn {

/// While the object lives, each tensor of `places` has the contents of its replacement in `tensors`: handles to it see
/// the replacement's values and autograd history, and in-place operations modify the replacement. The destructor
/// restores everything. Operations recorded in between stay valid: their gradients go to the replacements.
///
/// No other thread may use the places meanwhile. A result that is itself one of the places must be taken as a view().
class Substitution {
 public:
  /// Throws ValueError unless there are as many tensors as places and all are defined. Shapes, dtypes and devices may
  /// differ.
  Substitution(std::vector<Tensor> places, const std::vector<Tensor>& tensors);
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::vector<Tensor> places_, tensors_;
};

namespace detail {
/// Substitutes parameters and buffers by name.
class NamedSubstitution {
 public:
  NamedSubstitution(Module& module, const StateDict& tensors);
  /// Replaces a result that is one of the places by a view.
  void release(Tensor& result) const;

 private:
  std::vector<std::pair<std::string, Tensor>> own_;
  OwnedPtr<Substitution> substitution_;
};
}  // namespace detail

/// Calls the module with some of its parameters and buffers, given by name, replaced (PyTorch's
/// torch.func.functional_call), and returns what the module returns:
///
///   Tensor y = nn::functional_call(net, {{"fc1.weight", w}}, x);
///
/// Gradients go to the given tensors; the module's own tensors are unchanged afterwards. Throws StateError for names
/// that the module does not have and for shapes that differ.
template <std::derived_from<Module> M, class... A>
auto functional_call(M& module, const StateDict& tensors, A&&... arguments) {
  const detail::NamedSubstitution substitution(module, tensors);
  auto result = module(std::forward<A>(arguments)...);
  for_each_tensor(result, [&](Tensor& t) { substitution.release(t); });
  return result;
}
Tensor functional_call(Module& module, const StateDict& tensors, const Tensor& x);

}  // namespace levin::nn
