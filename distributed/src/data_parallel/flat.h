#pragma once
// Packs tensors into one flat tensor.

#include <levin/core/state_dict.h>

#include <vector>

namespace levin::distributed {

/// Indices in a list of the tensors of one dtype and device.
using Places = std::vector<std::size_t>;
std::vector<Places> by_type(const std::vector<Tensor>& tensors);

/// Returns copies of the tensors, or of those at these indices, as one tensor (elements of all).
Tensor packed(const std::vector<Tensor>& tensors);
Tensor packed(const std::vector<Tensor>& tensors, const Places& places);
/// Copies them back, in their shapes.
void unpack(const Tensor& flat, const std::vector<Tensor>& tensors);
void unpack(const Tensor& flat, const std::vector<Tensor>& tensors, const Places& places);

inline std::vector<Tensor> detached(const std::vector<Parameter>& parameters) {
  std::vector<Tensor> tensors;
  for (const Parameter& p : parameters) tensors.push_back(p.detach());
  return tensors;
}

}  // namespace levin::distributed
