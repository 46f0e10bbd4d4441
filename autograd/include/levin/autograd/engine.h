#pragma once
// Running gradients through the graph.

#include <levin/core/tensor.h>

namespace levin {

/// Adds the gradients of `outputs` with respect to every leaf to the leaves' grad(). `gradients` match the outputs'
/// shapes; an undefined one stands for 1 at a single element. `inputs`, when given, are the only tensors whose grad()
/// is changed. Throws GradError.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients = {},
              const BackwardOptions& options = {}, std::span<const Tensor> inputs = {});

/// For hooks that run during a backward pass: `done` is called when all of it is through, before backward returns, and
/// may throw; `failed` instead of it when an exception ends the pass. Within nested passes the outermost counts. Throws
/// GradError outside of a pass.
void on_backward_end(std::function<void()> done, std::function<void()> failed);

/// Arguments of grad().
struct GradOptions {
  bool retain_graph = false;   ///< implied by create_graph
  bool create_graph = false;   ///< record the backward itself, for gradients of gradients
  bool allow_unused = false;   ///< an input that outputs do not depend on gives an undefined gradient, not an error
};

/// Gradients of the sum of `outputs` (weighted by `gradients`) with respect to `inputs`; changes no grad().
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const GradOptions& options = {}, std::span<const Tensor> gradients = {});
std::vector<Tensor> grad(std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> inputs,
                         const GradOptions& options = {}, std::initializer_list<Tensor> gradients = {});

}  // namespace levin
