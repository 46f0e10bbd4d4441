#include "src/flat.h"

#include <levin/autograd/ops.h>

#include <algorithm>

namespace levin::distributed {

std::vector<Places> by_type(const std::vector<Tensor>& tensors) {
  std::vector<Places> groups;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto fits = [&](const Places& places) {
      const Tensor& first = tensors[places.front()];
      return first.dtype() == tensors[i].dtype() && first.device() == tensors[i].device();
    };
    const auto found = std::ranges::find_if(groups, fits);
    if (found == groups.end())
      groups.push_back({i});
    else
      found->push_back(i);
  }
  return groups;
}

Tensor packed(const std::vector<Tensor>& tensors, const Places& places) {
  int64_t numel = 0;
  for (const std::size_t i : places) numel += tensors[i].numel();
  const Tensor flat = empty({numel}, like(tensors[places.front()]));
  int64_t at = 0;
  for (const std::size_t i : places) {
    flat.narrow(0, at, tensors[i].numel()).view(tensors[i].sizes()).copy_(tensors[i]);
    at += tensors[i].numel();
  }
  return flat;
}

void unpack(const Tensor& flat, const std::vector<Tensor>& tensors, const Places& places) {
  int64_t at = 0;
  for (const std::size_t i : places) {
    tensors[i].copy_(flat.narrow(0, at, tensors[i].numel()).view(tensors[i].sizes()));
    at += tensors[i].numel();
  }
}

}  // namespace levin::distributed
