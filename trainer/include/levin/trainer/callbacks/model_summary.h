#pragma once
// Prints a summary of the network before training.

#include <levin/nn/module.h>
#include <levin/trainer/callback.h>

#include <cstdio>

namespace levin {

/// Options of ModelSummary.
struct ModelSummaryOptions {
  int max_depth = 1;        ///< levels of submodules; -1 for all
  std::FILE* out = stdout;  ///< receives the text; must stay open
};

/// Prints the module's type, summary() and hyper-parameters when a fit begins, on rank zero.
class ModelSummary : public Callback {
 public:
  /// Takes the depth of the table and the stream.
  explicit ModelSummary(ModelSummaryOptions options = {}) : options_(options) {}
  void on_fit_start(RunContext& run) override;

 private:
  ModelSummaryOptions options_;
};

/// Returns a table with the name, type and number of parameters of the submodules down to `max_depth`, followed by
/// totals.
std::string summary(const nn::Module& module, int max_depth = 1);
/// Runs the module on `inputs`, in evaluation mode and without a graph, and returns a table of the modules that it
/// calls, down to `max_depth` (-1 for all): name, type, output shape, parameters, floating-point operations and bytes
/// of memory that their kernels read and write, as the kernels' contracts count them. Modules take the tensors as in
/// Module::call; a call of `forward` itself is counted in the module that makes it.
std::string summary(nn::Module& module, const std::vector<Tensor>& inputs, int max_depth = 1);
std::string summary(nn::Module& module, const Tensor& input, int max_depth = 1);

}  // namespace levin
