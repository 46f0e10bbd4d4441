#include <levin/optim/rmsprop.h>

#include "fused_optimizer.h"

namespace levin::optim {

RMSprop::RMSprop(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("RMSprop", kernels::rmsprop_step, {"square_avg", "momentum_buffer", "grad_avg"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"alpha", &StepArgs::alpha, o.alpha},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"momentum", &StepArgs::momentum, o.momentum},
                      {"centered", &StepArgs::centered, o.centered},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::RmspropStepArgs>;

}  // namespace levin::optim
