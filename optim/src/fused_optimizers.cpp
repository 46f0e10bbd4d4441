// The tables of hyperparameters of the optimizers that are one kernel and nothing else.

#include "fused_optimizer.h"

#include <levin/optim/adadelta.h>
#include <levin/optim/adagrad.h>
#include <levin/optim/adamax.h>
#include <levin/optim/asgd.h>
#include <levin/optim/lion.h>
#include <levin/optim/radam.h>
#include <levin/optim/rmsprop.h>
#include <levin/optim/rprop.h>

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

void Adagrad::check_rows(const ParamGroup& group, const Parameter& p) const { check_row_decay("Adagrad", group, p); }

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

Lion::Lion(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("Lion", kernels::lion_step, {"exp_avg"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

RAdam::RAdam(std::vector<ParamGroup> groups, const Options& o)
    : FusedOptimizer("RAdam", kernels::radam_step, {"exp_avg", "exp_avg_sq"}, o.capturable,
                     {{"lr", &StepArgs::lr, o.lr},
                      {"beta1", &StepArgs::beta1, o.betas.first, {0, 1}},
                      {"beta2", &StepArgs::beta2, o.betas.second, {0, 1}},
                      {"eps", &StepArgs::eps, o.eps},
                      {"weight_decay", &StepArgs::weight_decay, o.weight_decay},
                      {"decoupled_weight_decay", &StepArgs::decoupled, o.decoupled_weight_decay},
                      {"maximize", &StepArgs::maximize, o.maximize}}) {
  add_param_groups(std::move(groups));
}

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

template class FusedOptimizer<kernels::AdadeltaStepArgs>;
template class FusedOptimizer<kernels::AdagradStepArgs>;
template class FusedOptimizer<kernels::AdamaxStepArgs>;
template class FusedOptimizer<kernels::AsgdStepArgs>;
template class FusedOptimizer<kernels::LionStepArgs>;
template class FusedOptimizer<kernels::RadamStepArgs>;
template class FusedOptimizer<kernels::RmspropStepArgs>;
template class FusedOptimizer<kernels::RpropStepArgs>;

}  // namespace levin::optim
