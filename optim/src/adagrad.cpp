#include <levin/optim/adagrad.h>

#include "fused_optimizer.h"

#include <fmt/format.h>

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

void Adagrad::check_rows(const ParamGroup& group, const Parameter& p) const {
  if (group["weight_decay"] != 0)
    throw ValueError(
        fmt::format("[Adagrad] weight_decay {} would change all rows of \"{}\", whose gradient is row-wise (sparse = "
                    "true). Set weight_decay = 0, or sparse = false.",
                    group["weight_decay"], p.name));
}

template class FusedOptimizer<kernels::AdagradStepArgs>;

}  // namespace levin::optim
