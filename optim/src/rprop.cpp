#include <levin/optim/rprop.h>

#include "fused_optimizer.h"

namespace levin::optim {

Rprop::Rprop(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Rprop", kernels::rprop_step, {"prev", "step_size"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"eta_minus", &StepArgs::eta_minus, o.eta_minus, {0, 1}},
                      {"eta_plus", &StepArgs::eta_plus, o.eta_plus, {.low = 1}},
                      {"step_size_min", &StepArgs::size_min, o.step_size_min},
                      {"step_size_max", &StepArgs::size_max, o.step_size_max},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::RpropStepArgs>;

}  // namespace levin::optim
