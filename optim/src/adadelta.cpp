#include <levin/optim/adadelta.h>

#include "fused_optimizer.h"

namespace levin::optim {

Adadelta::Adadelta(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Adadelta", kernels::adadelta_step, {"square_avg", "acc_delta"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"rho", &StepArgs::rho, o.rho, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::AdadeltaStepArgs>;

}  // namespace levin::optim
