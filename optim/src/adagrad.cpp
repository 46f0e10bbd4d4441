#include <levin/optim/adagrad.h>

#include "fused_optimizer.h"

namespace levin::optim {

Adagrad::Adagrad(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Adagrad", kernels::adagrad_step, {"sum"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"lr_decay", &StepArgs::lr_decay, o.lr_decay},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"initial_accumulator_value", nullptr, o.initial_accumulator_value},
                      {"eps", &StepArgs::eps, o.eps},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

template class FusedOptimizer<kernels::AdagradStepArgs>;

}  // namespace levin::optim
