#include <levin/optim/adam.h>

#include "fused.h"

#include <limits>

namespace levin::optim {

namespace {

std::vector<ParamGroup> one_group(std::vector<Parameter> params) { return {{.params = std::move(params)}}; }

}  // namespace

Adam::Adam(std::vector<Parameter> params, const Options& options) : Adam(one_group(std::move(params)), options) {}
Adam::Adam(std::vector<ParamGroup> groups, const Options& options) : Adam("Adam", false, std::move(groups), options) {}

Adam::Adam(const char* name, bool decoupled, std::vector<ParamGroup> groups, const Options& o)
    : Optimizer(name, {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"amsgrad", o.amsgrad},
                 {"maximize", o.maximize},
                 {"capturable", o.capturable}}),
      decoupled_(decoupled) {
  for (ParamGroup& g : groups) add_param_group(std::move(g));
}

AdamW::AdamW(std::vector<Parameter> params, const Options& options) : AdamW(one_group(std::move(params)), options) {}
AdamW::AdamW(std::vector<ParamGroup> groups, const Options& o)
    : Adam("AdamW", true, std::move(groups),
           {.lr = o.lr,
            .betas = o.betas,
            .eps = o.eps,
            .weight_decay = o.weight_decay,
            .amsgrad = o.amsgrad,
            .maximize = o.maximize,
            .capturable = o.capturable}) {}

void Adam::check(const Settings& s) const {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  require_range(s, "lr", 0, kAny);
  require_range(s, "beta1", 0, 1);
  require_range(s, "beta2", 0, 1);
  require_range(s, "eps", 0, kAny);
  require_range(s, "weight_decay", 0, kAny);
}

void Adam::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  FusedStep step(params);
  const bool amsgrad = group["amsgrad"] != 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    State& s = state_of(*params[i]);
    kernels::OptimTensor& o = step.tensors[i];
    count_step(s, group, *params[i], o);
    o.first = slot(s, 0, *params[i]).raw_data();
    o.second = slot(s, 1, *params[i]).raw_data();
    if (amsgrad) o.third = slot(s, 2, *params[i]).raw_data();
  }
  step.run(kernels::adam_step, {.tensors = {},
                                .lr = group["lr"],
                                .beta1 = group["beta1"],
                                .beta2 = group["beta2"],
                                .eps = group["eps"],
                                .weight_decay = group["weight_decay"],
                                .decoupled = decoupled_,
                                .amsgrad = amsgrad,
                                .maximize = group["maximize"] != 0,
                                .guard = guard(),
                                .lr_at = recorded_lr(group, *params[0])});
}

}  // namespace levin::optim
