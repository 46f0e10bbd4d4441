#include <levin/optim/clip.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/autograd/row_gradient.h>

#include <fmt/format.h>

#include <cmath>

namespace levin::optim {

namespace {

template <class List>
std::vector<Tensor> gradients(const List& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& p : parameters)
    if (const Tensor g = gradient_values(p); g.defined()) grads.push_back(g.detach());
  return grads;
}

void scale(const std::vector<Tensor>& grads, double max_norm, const Tensor& total_norm) {
  const Tensor factor = clamp(max_norm / (total_norm + 1e-6), std::nullopt, 1.0);
  for (const Tensor& g : grads) g.mul_(factor.to(g.device(), g.dtype()));
}

Tensor clip_norm(const std::vector<Tensor>& grads, double max_norm, const ClipNormOptions& options) {
  no_grad guard;
  if (grads.empty()) return zeros({});
  std::vector<Tensor> norms;
  for (const Tensor& g : grads) norms.push_back(norm(g, options.norm_type).to(grads[0].device(), grads[0].dtype()));
  const Tensor total = norm(stack(norms), options.norm_type);
  if (options.error_if_nonfinite && !std::isfinite(total.item<double>()))
    throw ValueError(
        fmt::format("[clip_grad_norm_] the norm of the {} gradients is {}. Lower the learning rate or the loss scale, "
                    "or set error_if_nonfinite = false.",
                    grads.size(), total.item<double>()));
  scale(grads, max_norm, total);
  return total;
}

void clip_value(const std::vector<Tensor>& grads, double limit) {
  no_grad guard;
  for (const Tensor& g : grads) g.clamp_(-limit, limit);
}

}  // namespace

Tensor clip_grad_norm_(const std::vector<Parameter>& parameters, double max_norm, const ClipNormOptions& options) {
  return clip_norm(gradients(parameters), max_norm, options);
}
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, const ClipNormOptions& options) {
  return clip_norm(gradients(parameters), max_norm, options);
}

void clip_grads_with_norm_(const std::vector<Parameter>& parameters, double max_norm, const Tensor& total_norm) {
  const no_grad guard;
  scale(gradients(parameters), max_norm, total_norm);
}

void clip_grad_value_(const std::vector<Parameter>& parameters, double limit) {
  clip_value(gradients(parameters), limit);
}
void clip_grad_value_(const std::vector<Tensor>& parameters, double limit) { clip_value(gradients(parameters), limit); }

}  // namespace levin::optim
