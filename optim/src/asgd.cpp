#include <levin/optim/asgd.h>

#include "fused_optimizer.h"

namespace levin::optim {

ASGD::ASGD(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("ASGD", kernels::asgd_step, {"ax"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"lambd", &StepArgs::lambd, o.lambd},
                      {"alpha", &StepArgs::alpha, o.alpha},
                      {"t0", &StepArgs::t0, o.t0},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::AsgdStepArgs>;

}  // namespace levin::optim
