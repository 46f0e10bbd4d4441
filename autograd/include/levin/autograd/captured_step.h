#pragma once
// A training step that is recorded once and replayed without the work around its kernels: no operators, no graph, no
// allocation. docs/captured_steps.md says what can be captured.

#include <levin/core/owned_ptr.h>

#include <cstddef>
#include <functional>

namespace levin {

/// Work that capture() has recorded: the kernels of the CPU, and those of the current CUDA device as a cuda::Graph.
/// Replays use the addresses of the capture; the captured step keeps all memory of the CPU that its kernels use.
class CapturedStep {
 public:
  CapturedStep(CapturedStep&&) noexcept;
  CapturedStep& operator=(CapturedStep&&) noexcept;
  ~CapturedStep();

  /// Runs the kernels in their order. Throws what a kernel throws (a label out of range), ValueError if a setting of an
  /// optimizer that is part of the recording has changed, and StateError during a capture. One thread at a time.
  void replay();
  /// Does what replay() does.
  void operator()() { replay(); }

  /// Returns the number of kernel calls on the CPU.
  std::size_t kernels() const;
  /// Returns the bytes of the CPU's memory that hold all tensors that the step makes.
  std::size_t memory() const;

 private:
  friend CapturedStep capture(const std::function<void()>& work, const CapturedStep* before);
  struct Impl;
  explicit CapturedStep(OwnedPtr<Impl> impl);
  OwnedPtr<Impl> impl_;
};

/// Records what `work` computes with tensors of the CPU and of the current CUDA device, by operations that this thread
/// calls; nothing is computed. Tensors that exist before are the step's inputs: write new values into them by copy_().
/// Tensors that `work` makes and that are kept (a loss, gradients) have new values after each replay. Before, run the
/// step once as usual, with optimizers whose `capturable` is set. Throws StateError, whose message begins with the
/// operation's name, for what cannot be captured, such as item(); an exception of `work` ends the capture.
///
/// `before` is a captured step that is replayed before each replay of this one, such as the forward of a backward: they
/// share their memory, and `work` may free tensors of `before` for its own.
[[nodiscard]] CapturedStep capture(const std::function<void()>& work, const CapturedStep* before = nullptr);

}  // namespace levin
