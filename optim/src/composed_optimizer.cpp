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
  for (const Parameter* p : params) step_values(group, *p, p->grad().detach(), {});
}

void ComposedOptimizer::step_rows(const ParamGroup& group, const Parameter& p, const RowGradient& gradient) {
  step_values(group, p, gradient.rows, gradient.indices);
}

void ComposedOptimizer::step_values(const ParamGroup& group, const Parameter& p, const Tensor& grad,
                                    const Tensor& indices) {
  const int64_t number = steps_done(p) + 1;
  State& state = state_of(p);
  ++state.step;
  const DType computed = size_of(p.dtype()) == 2 ? kFloat32 : p.dtype();
  const auto read = [&](const Tensor& whole) {
    return to(indices.defined() ? index_select(whole, 0, indices) : whole, computed);
  };
  Values values{read(p.detach()), to(grad, computed), {}};
  for (std::size_t i = 0; i < slots_; ++i) values.slots.push_back(read(slot(state, i, p)));
  if (group.has("maximize") && group["maximize"] != 0) values.grad = neg(values.grad);
  update(group, number, values);
  const auto store = [&](const Tensor& whole, const Tensor& value) {
    // If the gradients were not finite nothing changes; only the device knows.
    const Tensor changed = found_inf().defined() ? where(found_inf().eq(0), value, read(whole)) : value;
    if (indices.defined())
      whole.index_put_({indices}, to(changed, whole.dtype()));
    else
      whole.copy_(changed);
  };
  store(p.detach(), values.param);
  for (std::size_t i = 0; i < slots_; ++i) store(state.slots[i], values.slots[i]);
}

}  // namespace levin::optim
