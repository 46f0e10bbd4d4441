#pragma once
// A module that computes with other tensors than its own.

#include <levin/nn/module.h>

namespace levin::nn {

/// While the object lives, each of `places` is the tensor that stands for it: handles on a place see the other's
/// values and history, and edits in place reach them. Everything is put back at the end. What was recorded meanwhile
/// stays right: gradients go to the tensors that stood in.
///
/// Not for places that another thread uses at the time. A result that is a place itself must be taken by view().
class Substitution {
 public:
  /// As many tensors as places, defined ones; shapes, dtypes and devices may differ. Throws ValueError.
  Substitution(std::vector<Tensor> places, const std::vector<Tensor>& tensors);
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

 private:
  std::vector<Tensor> places_, tensors_;
};

/// Calls the module with some of its parameters and buffers replaced, by their names (PyTorch's
/// torch.func.functional_call):
///
///   Tensor y = nn::functional_call(net, {{"fc1.weight", w}}, x);
///
/// Gradients go to the given tensors; the module's own are as before. Throws StateError for names that the module does
/// not have and for other shapes.
Tensor functional_call(Module& module, const StateDict& tensors, const Tensor& x);

}  // namespace levin::nn
