#include "fused_optimizer.h"

#include <levin/autograd/record.h>

namespace levin::optim {

FusedStep::FusedStep(const std::vector<const Parameter*>& params) : params_(params) {
  for (const Parameter* p : params) {
    values_.push_back(p->is_contiguous() ? static_cast<const Tensor&>(*p) : p->detach().contiguous());
    grads_.push_back(p->grad().detach().contiguous());
    kernels::OptimTensor t;
    t.param = values_.back().raw_data();
    t.grad = grads_.back().raw_data();
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

}  // namespace levin::optim
