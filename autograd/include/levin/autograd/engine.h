#pragma once
// Runs gradients through the graph.

#include <levin/core/tensor.h>

namespace levin {

/// Adds the gradients of `outputs` with respect to every leaf to the leaves' grad(). `gradients` have the outputs'
/// shapes; an undefined one stands for 1 and needs an output with a single element. If `inputs` are given, only their
/// grad() is changed. Throws GradError.
void backward(std::span<const Tensor> outputs, std::span<const Tensor> gradients = {},
              const BackwardOptions& options = {}, std::span<const Tensor> inputs = {});

/// Registers callbacks from a hook that runs during a backward pass: `done` is called when the whole pass has finished,
/// before backward returns, and may throw; `failed` is called instead if an exception ends the pass. In nested passes,
/// the outermost pass counts. Throws GradError outside of a pass.
void on_backward_end(std::function<void()> done, std::function<void()> failed);

/// Arguments of grad().
struct GradOptions {
  bool retain_graph = false;   ///< implied by create_graph
  bool create_graph = false;   ///< record the backward itself, for gradients of gradients
  bool allow_unused = false;   ///< an input that the outputs do not depend on gets an undefined gradient, not an error
};

/// Returns the gradients of the sum of `outputs` (weighted by `gradients`) with respect to `inputs`; changes no grad().
std::vector<Tensor> grad(std::span<const Tensor> outputs, std::span<const Tensor> inputs,
                         const GradOptions& options = {}, std::span<const Tensor> gradients = {});
std::vector<Tensor> grad(std::initializer_list<Tensor> outputs, std::initializer_list<Tensor> inputs,
                         const GradOptions& options = {}, std::initializer_list<Tensor> gradients = {});

}  // namespace levin
