#include "fused_optimizer.h"

#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/record.h>

#include <fmt/format.h>

namespace levin::optim {

FusedStep::FusedStep(const std::vector<const Parameter*>& params) : params_(params) {
  for (const Parameter* p : params) {
    values_.push_back(p->is_contiguous() ? static_cast<const Tensor&>(*p) : p->detach().contiguous());
    grads_.push_back(p->grad().detach().contiguous());
    kernels::OptimTensor t;
    t.param = values_.back().tensor_view().pointer;
    t.grad = grads_.back().tensor_view().pointer;
    t.numel = p->numel();
    t.dtype = p->dtype();
    tensors.push_back(t);
  }
}

void FusedStep::finish() {
  for (std::size_t i = 0; i < params_.size(); ++i) {
    if (params_[i]->is_contiguous()) {
      end_in_place(*params_[i]);
    } else {
      params_[i]->copy_(values_[i]);
    }
  }
}

RowStep::RowStep(const Parameter& parameter, const std::vector<Tensor>& slots, const RowGradient& gradient,
                 kernels::OptimTensor& tensor)
    : indices_(gradient.indices), gradient_(gradient.rows.contiguous()) {
  const auto rows = [&](const Tensor& whole) {
    copies_.push_back({whole, index_select(whole, 0, indices_)});
    return copies_.back().rows.tensor_view().pointer;
  };
  tensor.param = rows(parameter.detach());
  tensor.grad = gradient_.tensor_view().pointer;
  void** const memory[kernels::kOptimSlots] = {&tensor.first, &tensor.second, &tensor.third};
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (*memory[i]) *memory[i] = rows(slots[i]);
  tensor.numel = gradient_.numel();
  tensor.dtype = parameter.dtype();
}

void RowStep::finish() {
  for (const Copy& c : copies_) c.whole.index_put_({indices_}, c.rows);
}

void check_row_decay(const char* optimizer, const ParamGroup& group, const Parameter& p) {
  if (group["weight_decay"] != 0)
    throw ValueError(
        fmt::format("[{}] weight_decay {} would change all rows of \"{}\", whose gradient is row-wise (sparse = "
                    "true). Set weight_decay = 0, or sparse = false.",
                    optimizer, group["weight_decay"], p.name));
}

}  // namespace levin::optim
