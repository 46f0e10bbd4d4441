#pragma once
// The optimizers of kernels/optim.h. Both devices make their kernels from these rows and from optim_formulas.inc.

#include <levin/kernels/optim.h>

/// Calls row(name of the table, its arguments) for each optimizer.
#define LEVIN_OPTIMIZER_ROWS(row)                                                                              \
  row(sgd_step, SgdStepArgs) row(adam_step, AdamStepArgs) row(rmsprop_step, RmspropStepArgs)                   \
      row(adagrad_step, AdagradStepArgs) row(adadelta_step, AdadeltaStepArgs) row(adamax_step, AdamaxStepArgs) \
          row(radam_step, RadamStepArgs) row(rprop_step, RpropStepArgs) row(asgd_step, AsgdStepArgs)           \
              row(lion_step, LionStepArgs)

namespace levin::kernels {

/// Numbers that a formula uses besides the arguments of the call, read where the step runs.
struct StepNumbers {
  double lr;
  double number;  ///< of this step, starting at 1
  bool fresh;     ///< the tensor's slots are not initialised yet
};

/// The slots that some step of an optimizer uses.
template <class Args>
inline constexpr unsigned kAllSlots = [] {
  unsigned all = 0;
  for (const unsigned set : Args::kSlotSets) all |= set;
  return all;
}();

}  // namespace levin::kernels
