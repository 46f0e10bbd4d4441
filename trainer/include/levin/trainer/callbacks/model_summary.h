#pragma once
// Prints a summary of the network before training.

#include <levin/nn/module.h>
#include <levin/trainer/callback.h>

#include <cstdio>

namespace levin {

struct ModelSummaryOptions {
  int max_depth = 1;  ///< levels of submodules; -1 for all
  std::FILE* out = stdout;
};

class ModelSummary : public Callback {
 public:
  explicit ModelSummary(ModelSummaryOptions options = {}) : options_(options) {}
  void on_fit_start(RunContext& run) override;

 private:
  ModelSummaryOptions options_;
};

/// Returns a table with the name, type and number of parameters of the submodules down to `max_depth`, followed by
/// totals.
std::string summary(const nn::Module& module, int max_depth = 1);

}  // namespace levin
