#include "cases/composed/draws.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace levin::test {

namespace {

/// Indices, and values that depend on their place, belong to the listed sizes.
bool keeps_sizes(const Sample& s) {
  return s.fixed || std::ranges::any_of(s.inputs, [](const InputSpec& i) { return i.dtype || !i.rearrange; });
}

}  // namespace

std::function<Sample(Draw&)> resized(std::vector<Sample> samples) {
  return [samples = std::move(samples)](Draw& d) {
    Sample s = d.of(samples);
    if (keeps_sizes(s) || !d.chance(80)) return s;
    std::map<int64_t, int64_t> sizes{{0, 0}, {1, 1}};
    int64_t growth = 1;
    for (InputSpec& i : s.inputs) {
      const int64_t before = i.sizes.numel();
      for (int axis = 0; axis < i.sizes.size(); ++axis) {
        const auto [place, added] = sizes.try_emplace(i.sizes[axis], 0);
        if (added) place->second = d.between(1, 7);
        i.sizes[axis] = place->second;
      }
      if (before > 0) growth = std::max(growth, (i.sizes.numel() + before - 1) / before);
    }
    s.terms *= growth;
    return s;
  };
}

std::string tuple(const Shape& s) {
  std::string text = "(";
  for (const int64_t n : s) text += fmt::format("{},", n);
  return text + ")";
}

Shape filled(Draw& d, int least_dims, int most_dims, int64_t elements) {
  Shape s = d.shape(least_dims, most_dims, elements);
  for (int64_t& n : s) n = std::max<int64_t>(n, 1);
  return s;
}

}  // namespace levin::test
