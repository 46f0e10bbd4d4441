#pragma once
// Positions of a strided view's elements in memory.

#include <levin/core/tensor.h>

#include <algorithm>
#include <utility>

namespace levin::ops {

/// Sizes, strides and offset of a view, counted in elements of the memory that it describes.
struct Region {
  Shape sizes, strides;
  int64_t offset = 0;

  /// Returns one past the last element that the view reaches; 0 if it has no elements.
  int64_t end() const {
    if (sizes.numel() == 0) return 0;
    int64_t last = offset;
    for (int d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
    return last + 1;
  }

  /// True if several elements of the view may share memory. There are no false negatives: the axes are taken by
  /// ascending stride, and each has to step beyond the reach of the axes before it.
  bool may_overlap() const {
    if (sizes.numel() == 0) return false;
    Shape steps, lengths;  // strides and sizes by ascending stride; insertion sort, since there are few axes
    for (int d = 0; d < sizes.size(); ++d) {
      if (sizes[d] <= 1) continue;
      steps.push_back(strides[d]);
      lengths.push_back(sizes[d]);
      for (int i = steps.size() - 1; i > 0 && steps[i] < steps[i - 1]; --i) {
        std::swap(steps[i], steps[i - 1]);
        std::swap(lengths[i], lengths[i - 1]);
      }
    }
    int64_t reach = 0;
    for (int i = 0; i < steps.size(); ++i) {
      if (steps[i] <= reach) return true;
      reach += (lengths[i] - 1) * steps[i];
    }
    return false;
  }
};

inline Region region_of(const Tensor& x) { return {x.sizes(), x.strides(), x.storage_offset()}; }

/// Counts the parts of complex elements, as a last axis of two.
inline Region real_region_of(const Tensor& x) {
  Region r = region_of(x);
  if (!x.is_complex()) return r;
  for (int64_t& s : r.strides) s *= 2;
  r.sizes.push_back(2);
  r.strides.push_back(1);
  r.offset *= 2;
  return r;
}

/// Rebases both regions of one memory to the first element that either of them contains.
inline std::pair<Region, Region> shared_memory(Region one, Region other) {
  const int64_t begin = std::min(one.offset, other.offset);
  one.offset -= begin;
  other.offset -= begin;
  return {one, other};
}

}  // namespace levin::ops
