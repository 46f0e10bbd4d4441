#include <levin/optim/lion.h>

#include "fused_optimizer.h"

namespace levin::optim {

Lion::Lion(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Lion", kernels::lion_step, {"exp_avg"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::LionStepArgs>;

}  // namespace levin::optim
