#include <levin/autograd/ops/view.h>
#include <levin/nn/functional_call.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::nn {

namespace {

/// Swaps the contents of two tensors; handles to them keep their identity.
void swap_contents(const Tensor& a, const Tensor& b) {
  TensorImpl& x = *a.impl();
  TensorImpl& y = *b.impl();
  x.storage.swap(y.storage);
  std::swap(x.offset, y.offset);
  std::swap(x.numel, y.numel);
  std::swap(x.sizes, y.sizes);
  std::swap(x.strides, y.strides);
  std::swap(x.dtype, y.dtype);
  std::swap(x.device, y.device);
  std::swap(x.contiguous, y.contiguous);
  std::swap(x.inference, y.inference);
  std::swap(x.autograd, y.autograd);
}

/// Returns a tensor with the contents of `t` that may be swapped. The contents of a leaf that requires grad may not,
/// since its gradient accumulator and saved tensors refer to its address.
Tensor guest(const Tensor& t) {
  if (t.requires_grad()) return t.view(t.sizes());
  return alias(t, t.sizes(), t.strides(), t.storage_offset());
}

}  // namespace

Substitution::Substitution(std::vector<Tensor> places, const std::vector<Tensor>& tensors)
    : places_(std::move(places)) {
  if (places_.size() != tensors.size())
    throw ValueError(
        fmt::format("[Substitution] {} places, but {} tensors to stand there.", places_.size(), tensors.size()));
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].defined() || !tensors[i].defined())
      throw ValueError(fmt::format("[Substitution] number {} is undefined; leave it out.", i));
    tensors_.push_back(guest(tensors[i]));
  }
  for (std::size_t i = 0; i < places_.size(); ++i) swap_contents(places_[i], tensors_[i]);
}

Substitution::~Substitution() {
  for (std::size_t i = places_.size(); i-- > 0;) swap_contents(places_[i], tensors_[i]);
}

detail::NamedSubstitution::NamedSubstitution(Module& module, const StateDict& tensors)
    : own_(module.named_parameters()) {
  for (auto& buffer : module.named_buffers()) own_.push_back(std::move(buffer));
  std::vector<Tensor> places, others;
  for (const StateDict::Entry& given : tensors) {
    const auto found = std::find_if(own_.begin(), own_.end(), [&](const auto& e) { return e.first == given.first; });
    if (found == own_.end())
      throw StateError(
          fmt::format("[functional_call] a {} has no parameter or buffer \"{}\".", module.type_name(), given.first));
    if (found->second.sizes() != given.second.sizes())
      throw StateError(fmt::format("[functional_call] \"{}\" has shape {}, the tensor given for it {}.", given.first,
                                   to_string(found->second.sizes()), to_string(given.second.sizes())));
    places.push_back(found->second);
    others.push_back(given.second);
  }
  substitution_ = std::make_unique<Substitution>(std::move(places), others);
}

void detail::NamedSubstitution::release(Tensor& result) const {
  for (const auto& entry : own_)
    if (entry.second.is_same(result)) {
      result = result.view(result.sizes());
      return;
    }
}

Tensor functional_call(Module& module, const StateDict& tensors, const Tensor& x) {
  return functional_call<Module>(module, tensors, x);
}

}  // namespace levin::nn
