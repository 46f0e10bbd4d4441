#include "src/data_parallel/flat.h"

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

namespace {

std::vector<Tensor> at(const std::vector<Tensor>& tensors, const Places& places) {
  std::vector<Tensor> some;
  for (const std::size_t i : places) some.push_back(tensors[i]);
  return some;
}

}  // namespace

Tensor packed(const std::vector<Tensor>& tensors) {
  int64_t numel = 0;
  for (const Tensor& t : tensors) numel += t.numel();
  const Tensor flat = empty({numel}, like(tensors.front()));
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    flat.narrow(0, begin, t.numel()).view(t.sizes()).copy_(t);
    begin += t.numel();
  }
  return flat;
}

Tensor packed(const std::vector<Tensor>& tensors, const Places& places) { return packed(at(tensors, places)); }

void unpack(const Tensor& flat, const std::vector<Tensor>& tensors) {
  int64_t begin = 0;
  for (const Tensor& t : tensors) {
    t.copy_(flat.narrow(0, begin, t.numel()).view(t.sizes()));
    begin += t.numel();
  }
}

void unpack(const Tensor& flat, const std::vector<Tensor>& tensors, const Places& places) {
  unpack(flat, at(tensors, places));
}

}  // namespace levin::distributed
