#include <levin/optim/sgd.h>

#include "fused.h"

#include <fmt/format.h>

#include <limits>

namespace levin::optim {

SGD::SGD(std::vector<Parameter> params, const Options& options)
    : SGD(std::vector<ParamGroup>{{.params = std::move(params)}}, options) {}

SGD::SGD(std::vector<ParamGroup> groups, const Options& o)
    : Optimizer("SGD", {"momentum_buffer"},
                {{"lr", o.lr},
                 {"momentum", o.momentum},
                 {"dampening", o.dampening},
                 {"weight_decay", o.weight_decay},
                 {"nesterov", o.nesterov},
                 {"maximize", o.maximize},
                 {"capturable", o.capturable}}) {
  for (ParamGroup& g : groups) add_param_group(std::move(g));
}

void SGD::check(const Settings& s) const {
  constexpr double kAny = std::numeric_limits<double>::infinity();
  require_range(s, "lr", 0, kAny);
  require_range(s, "momentum", 0, kAny);
  require_range(s, "weight_decay", 0, kAny);
  if (s.at("nesterov") != 0 && (s.at("momentum") <= 0 || s.at("dampening") != 0))
    throw ValueError(fmt::format("[SGD] nesterov needs a momentum above 0 and no dampening; they are {} and {}.",
                                 s.at("momentum"), s.at("dampening")));
}

void SGD::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  FusedStep step(params);
  const double momentum = group["momentum"];
  for (std::size_t i = 0; i < params.size(); ++i) {
    State& s = state_of(*params[i]);
    count_step(s, group, *params[i], step.tensors[i]);
    if (momentum == 0) continue;
    step.tensors[i].fresh = !s.slots[0].defined();
    step.tensors[i].first = slot(s, 0, *params[i]).raw_data();
  }
  step.run(kernels::sgd_step, {.tensors = {},
                               .lr = group["lr"],
                               .momentum = momentum,
                               .dampening = group["dampening"],
                               .weight_decay = group["weight_decay"],
                               .nesterov = group["nesterov"] != 0,
                               .maximize = group["maximize"] != 0,
                               .guard = guard(),
                               .lr_at = recorded_lr(group, *params[0])});
}

}  // namespace levin::optim
