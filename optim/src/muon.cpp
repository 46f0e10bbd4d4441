#include <levin/optim/muon.h>

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace levin::optim {

namespace {

/// Brings the singular values of x near 1 by iterating a polynomial of fifth degree in x.
Tensor orthogonalized(const Tensor& x, int64_t steps, double eps) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;  // steepest at 0 (Jordan et al. 2024)
  const bool tall = x.size(0) > x.size(1);
  Tensor y = tall ? transpose(x, 0, 1) : x;
  y = div(y, clamp(norm(y), eps));
  for (int64_t i = 0; i < steps; ++i) {
    const Tensor gram = mm(y, transpose(y, 0, 1));
    y = addmm(y, addmm(gram, gram, gram, b, c), y, a);
  }
  return tall ? transpose(y, 0, 1) : y;
}

}  // namespace

Muon::Muon(std::vector<ParamGroup> groups, const Options& o)
    : ComposedOptimizer("Muon", {"momentum_buffer"},
                        {{"lr", o.lr},
                         {"weight_decay", o.weight_decay},
                         {"momentum", o.momentum, {0, 1}},
                         {"nesterov", o.nesterov ? 1.0 : 0.0},
                         {"eps", o.eps},
                         {"ns_steps", static_cast<double>(o.ns_steps), {0, 100}},
                         {"match_rms_adamw", o.match_rms_adamw ? 1.0 : 0.0},
                         {"maximize", o.maximize ? 1.0 : 0.0}}) {
  require_matrices(groups);
  add_param_groups(std::move(groups));
}

void Muon::require_matrices(const std::vector<ParamGroup>& groups) const {
  for (const ParamGroup& g : groups)
    for (const Parameter& p : g.params)
      if (p.dim() != 2)
        throw ValueError(fmt::format("[Muon] \"{}\" is {}, and Muon updates matrices only. Give it to AdamW.", p.name,
                                     to_string(p.sizes())));
}

void Muon::update(const ParamGroup& group, int64_t, Values& v) const {
  if (v.param.dim() != 2)  // of a group that was added later
    throw ValueError(fmt::format("[Muon] a parameter is {}, and Muon updates matrices only. Give it to AdamW.",
                                 to_string(v.param.sizes())));
  const double lr = group["lr"], momentum = group["momentum"];
  v.slots[0] = lerp(v.slots[0], v.grad, 1 - momentum);
  const Tensor direction = group["nesterov"] != 0 ? lerp(v.grad, v.slots[0], momentum) : v.slots[0];
  const auto rows = static_cast<double>(v.param.size(0)), columns = static_cast<double>(v.param.size(1));
  const double scale = group["match_rms_adamw"] != 0 ? 0.2 * std::sqrt(std::max(rows, columns))
                                                     : std::sqrt(std::max(1.0, rows / columns));
  const Tensor update = orthogonalized(direction, static_cast<int64_t>(group["ns_steps"]), group["eps"]);
  v.param = sub(mul(v.param, 1 - lr * group["weight_decay"]), update, lr * scale);
}

}  // namespace levin::optim
