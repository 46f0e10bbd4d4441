#include <levin/optim/composed_optimizer.h>

#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/row_gradient.h>

#include <fmt/format.h>

namespace levin::optim {

ComposedOptimizer::ComposedOptimizer(const char* name, std::vector<std::string> slots,
                                     std::vector<Hyperparameter> hyperparameters)
    : Optimizer(name, slots,
                [&] {
                  Settings defaults{{"capturable", 0.0}};
                  for (const Hyperparameter& h : hyperparameters) defaults[h.name] = h.value;
                  return defaults;
                }()),
      hyperparameters_(std::move(hyperparameters)),
      slots_(slots.size()) {}

void ComposedOptimizer::check(const Settings& s) const {
  for (const Hyperparameter& h : hyperparameters_) require_range(s, h.name, h.range.low, h.range.high);
  if (s.at("capturable") != 0)
    throw ValueError(fmt::format("[{}] its steps cannot be captured into a graph. Leave capturable.", name()));
}

void ComposedOptimizer::step_group(const ParamGroup& group, const std::vector<const Parameter*>& params) {
  for (const Parameter* p : params) {
    const int64_t number = steps_done(*p) + 1;
    State& state = state_of(*p);
    ++state.step;
    const DType computed = size_of(p->dtype()) == 2 ? kFloat32 : p->dtype();
    Values values{to(p->detach(), computed), to(p->grad().detach(), computed), {}};
    for (std::size_t i = 0; i < slots_; ++i) values.slots.push_back(to(slot(state, i, *p), computed));
    if (group.has("maximize") && group["maximize"] != 0) values.grad = neg(values.grad);
    update(group, number, values);
    // If the gradients were not finite nothing changes; only the device knows.
    const auto store = [&](const Tensor& to, const Tensor& value) {
      to.copy_(found_inf().defined() ? where(found_inf().eq(0), value, to.to(computed)) : value);
    };
    store(p->detach(), values.param);
    for (std::size_t i = 0; i < slots_; ++i) store(state.slots[i], values.slots[i]);
  }
}

void ComposedOptimizer::step_rows(const ParamGroup& group, const Parameter& p, const RowGradient& gradient) {
  const int64_t number = steps_done(p) + 1;
  State& state = state_of(p);
  ++state.step;
  const DType computed = size_of(p.dtype()) == 2 ? kFloat32 : p.dtype();
  const auto rows = [&](const Tensor& whole) { return to(index_select(whole, 0, gradient.indices), computed); };
  Values values{rows(p.detach()), to(gradient.rows, computed), {}};
  for (std::size_t i = 0; i < slots_; ++i) values.slots.push_back(rows(slot(state, i, p)));
  if (group.has("maximize") && group["maximize"] != 0) values.grad = neg(values.grad);
  update(group, number, values);
  const auto store = [&](const Tensor& whole, const Tensor& value) {
    const Tensor changed = found_inf().defined() ? where(found_inf().eq(0), value, rows(whole)) : value;
    whole.index_put_({gradient.indices}, to(changed, whole.dtype()));
  };
  store(p.detach(), values.param);
  for (std::size_t i = 0; i < slots_; ++i) store(state.slots[i], values.slots[i]);
}

}  // namespace levin::optim
