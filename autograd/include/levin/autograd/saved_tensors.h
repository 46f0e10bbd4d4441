#pragma once
// Replaces what operations save for backward: compressed, on another device, or computed again.

#include <levin/core/tensor.h>

#include <any>
#include <functional>

namespace levin {

/// While it lives, on its thread, operations save pack(x) instead of x, and backward reads unpack of that:
///
///   saved_tensors_hooks half([](const Tensor& x) -> std::any { return x.to(kHalf); },
///                            [](const std::any& p) { return std::any_cast<Tensor>(p).to(kFloat32); });
///
/// unpack must return a tensor of x's sizes, dtype and device; backward throws GradError otherwise. Both run without
/// recording. Leaves that require grad (parameters) are saved as they are, since they live as long anyway. Of nested
/// objects the innermost one counts.
class saved_tensors_hooks {
 public:
  /// Pack returns what is saved in place of a tensor, and Unpack returns the tensor for it.
  using Pack = std::function<std::any(const Tensor&)>;
  using Unpack = std::function<Tensor(const std::any&)>;
  /// Begins the scope with these functions, pack and unpack; backward may call `unpack` from another thread.
  saved_tensors_hooks(Pack pack, Unpack unpack);
  ~saved_tensors_hooks();
  saved_tensors_hooks(const saved_tensors_hooks&) = delete;
  saved_tensors_hooks& operator=(const saved_tensors_hooks&) = delete;

  struct Functions;

 private:
  std::shared_ptr<Functions> before_;
};

/// Keeps what operations save in the CPU's memory and returns it to its device for backward.
struct save_on_cpu : saved_tensors_hooks {
  /// Begins the scope.
  save_on_cpu();
};

}  // namespace levin
