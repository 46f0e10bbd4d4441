#include <levin/optim/adam.h>

#include "fused_optimizer.h"

namespace levin::optim {

Adam::Adam(std::vector<ParamGroup> groups, const Options& options) : Adam("Adam", false, std::move(groups), options) {}

Adam::Adam(const char* name, bool decoupled, std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer(name, kernels::adam_step, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"amsgrad", &StepArgs::amsgrad, o.amsgrad},
                      {"maximize", &StepArgs::maximize, o.maximize}}),
      decoupled_(decoupled) {
  add_param_groups(std::move(groups));
}

AdamW::AdamW(std::vector<ParamGroup> groups, const Options& o)
    : Adam("AdamW", true, std::move(groups),
           {.lr = o.lr,
            .betas = o.betas,
            .eps = o.eps,
            .weight_decay = o.weight_decay,
            .amsgrad = o.amsgrad,
            .maximize = o.maximize,
            .capturable = o.capturable}) {}

template class FusedOptimizer<kernels::AdamStepArgs>;

}  // namespace levin::optim
