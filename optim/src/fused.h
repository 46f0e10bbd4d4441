#pragma once
// Shared by the optimizers: one fused step over the contiguous memory of parameters.

#include <levin/autograd/record.h>
#include <levin/core/state_dict.h>
#include <levin/kernels/optim.h>

namespace levin::optim {

/// Collects the tensors of a step. A parameter that is not contiguous is updated in a copy, which is copied back.
class FusedStep {
 public:
  explicit FusedStep(const std::vector<const Parameter*>& params) : params_(params) {
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

  template <class Args>
  void run(const kernels::Kernel<void(const Args&, Stream&)>& kernel, Args args) {
    args.tensors = tensors;
    Stream stream = current_stream(params_[0]->device());
    kernel(args, stream);
    for (std::size_t i = 0; i < params_.size(); ++i) {
      if (params_[i]->is_contiguous()) {
        end_in_place(*params_[i]);
      } else {
        params_[i]->copy_(values_[i]);
      }
    }
  }

  std::vector<kernels::OptimTensor> tensors;

 private:
  const std::vector<const Parameter*>& params_;
  std::vector<Tensor> values_, grads_;
};

}  // namespace levin::optim
