#include <levin/optim/adamax.h>

#include "fused_optimizer.h"

namespace levin::optim {

Adamax::Adamax(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Adamax", kernels::adamax_step, {"exp_avg", "exp_inf"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::AdamaxStepArgs>;

}  // namespace levin::optim
