#include <levin/trainer/master_weights.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/nn/layers.h>

#include <algorithm>

namespace levin {
namespace {

/// Converts to float16 except for normalisation layers, whose values never pass through float16.
void halve(nn::Module& module) {
  std::vector<std::pair<nn::Module*, std::vector<std::pair<Tensor, Tensor>>>> spared;
  for (const auto& [name, m] : module.named_modules()) {
    if (!m->is_normalization()) continue;
    auto& values = spared.emplace_back(m, std::vector<std::pair<Tensor, Tensor>>()).second;
    for (const auto& [key, t] : m->named_parameters()) values.emplace_back(t, t.detach().clone());
    for (const auto& [key, t] : m->named_buffers()) values.emplace_back(t, t.detach().clone());
  }
  module.to(kHalf);
  const no_grad guard;
  for (const auto& [m, values] : spared) {
    m->to(kFloat32);
    for (const auto& [t, before] : values) t.copy_(before);
  }
}

bool same_values(const Tensor& a, const Tensor& b) { return eq(a, b).all().item<bool>(); }

}  // namespace

void MasterWeights::setup(nn::Module& module) {
  const no_grad guard;
  refresh();  // syncs masters from an earlier setup of this module
  std::vector<Pair> former = std::exchange(pairs_, {});
  module.to(kFloat32);
  for (const auto& [name, p] : module.named_parameters()) {
    const auto known =
        std::ranges::find_if(former, [&, &tensor = p](const Pair& f) { return f.model.is_same(tensor); });
    pairs_.push_back({name, p, known == former.end() ? p.detach().clone() : known->master.to(p.device())});
  }
  halve(module);
  std::erase_if(pairs_, [](const Pair& p) { return p.model.dtype() != kHalf; });
}

/// If a model weight no longer matches its master, it was changed externally and replaces the master.
void MasterWeights::refresh() {
  for (Pair& p : pairs_) {
    p.master = p.master.to(p.model.device());
    if (!same_values(p.master.to(p.model.dtype()), p.model.detach())) p.master.copy_(p.model.detach());
  }
}

void MasterWeights::attach(optim::Optimizer& optimizer) {
  const no_grad guard;
  refresh();
  const auto known = optimizer.parameters();
  for (Pair& p : pairs_) {
    // Already attached and called again for new groups: the optimizer's state belongs to this tensor.
    if (std::ranges::any_of(known, [&](const Parameter& own) { return own.is_same(p.master); })) continue;
    p.attached = false;
    p.master = p.master.detach().requires_grad_();  // a separate tensor for each optimizer, without a gradient
  }
  for (optim::ParamGroup& group : optimizer.param_groups()) {
    for (Parameter& parameter : group.params) {
      const auto pair = std::ranges::find_if(pairs_, [&](const Pair& p) { return p.model.is_same(parameter); });
      if (pair == pairs_.end()) continue;
      pair->attached = true;
      parameter = Parameter(parameter.name, pair->master);
    }
  }
}

void MasterWeights::zero_grad() {
  for (const Pair& p : pairs_) p.model.set_grad({});
}

void MasterWeights::take_gradients() {
  const no_grad guard;
  for (const Pair& p : pairs_) {
    if (!p.attached || !p.model.grad().defined()) continue;
    p.master.set_grad(p.model.grad().detach().to(kFloat32));
    p.model.set_grad({});
  }
}

void MasterWeights::give_weights() {
  const no_grad guard;
  for (const Pair& p : pairs_)
    if (p.attached) p.model.copy_(p.master);
}

StateDict MasterWeights::state_dict(const nn::Module& module) const {
  const no_grad guard;
  StateDict state;
  for (const auto& [name, t] : module.state_dict()) {
    // Compare storage, since a tied weight has several names.
    const auto pair =
        std::ranges::find_if(pairs_, [&, &own = t](const Pair& p) { return p.model.shares_storage(own); });
    const Tensor& weight = pair == pairs_.end() ? t : pair->master;
    state.set(name, weight.is_floating() ? weight.detach().to(kFloat32) : weight);
  }
  return state;
}

void MasterWeights::load_state_dict(nn::Module& module, const StateDict& state) {
  const no_grad guard;
  module.load_state_dict(state);
  for (const Pair& p : pairs_)
    if (const Tensor* t = state.find(p.name)) p.master.copy_(t->to(p.master.device(), kFloat32));
}

MasterWeights::MasterWeights() = default;
MasterWeights::MasterWeights(nn::Module& module) { setup(module); }
MasterWeights::~MasterWeights() = default;
MasterWeights::MasterWeights(const MasterWeights&) = default;
MasterWeights::MasterWeights(MasterWeights&&) noexcept = default;
MasterWeights& MasterWeights::operator=(const MasterWeights&) = default;
MasterWeights& MasterWeights::operator=(MasterWeights&&) noexcept = default;

}  // namespace levin
