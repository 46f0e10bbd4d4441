#include <levin/core/shape.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin {

void Shape::too_many() {
  throw ShapeError(fmt::format("[shape] a tensor has at most {} dimensions.", kMaxDims));
}

std::string to_string(const Shape& shape) {
  if (shape.size() == 1) return fmt::format("({},)", shape[0]);
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

Shape contiguous_strides(const Shape& sizes) {
  Shape strides = Shape::filled(sizes.size(), 1);
  for (int i = sizes.size() - 2; i >= 0; --i) strides[i] = strides[i + 1] * std::max<int64_t>(sizes[i + 1], 1);
  return strides;
}

bool is_contiguous(const Shape& sizes, const Shape& strides) {
  int64_t expected = 1;
  bool contiguous = true;
  for (int i = sizes.size() - 1; i >= 0; --i) {
    if (sizes[i] == 0) return true;
    if (sizes[i] != 1) {
      contiguous = contiguous && strides[i] == expected;
      expected *= sizes[i];
    }
  }
  return contiguous;
}

int wrap_axis(int64_t axis, int dims, const char* op) {
  const int64_t range = std::max(dims, 1);
  if (axis < -range || axis >= range) {
    throw IndexError(fmt::format("[{}] axis {} is out of range for a tensor of {} dimension{}: use {} to {}.", op, axis,
                                 dims, dims == 1 ? "" : "s", -range, range - 1));
  }
  return static_cast<int>(axis < 0 ? axis + range : axis);
}

Shape wrap_axes(const Shape& axes, int dims, const char* op) {
  Shape result;
  if (axes.empty()) {
    for (int i = 0; i < dims; ++i) result.push_back(i);
    return result;
  }
  for (const int64_t axis : axes) {
    const int wrapped = wrap_axis(axis, dims, op);
    if (std::find(result.begin(), result.end(), wrapped) != result.end()) {
      throw IndexError(fmt::format("[{}] axis {} appears more than once in {}. Name each axis once.", op, wrapped,
                                   to_string(axes)));
    }
    result.push_back(wrapped);
  }
  return result;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, const char* op) {
  if (a == b) return a;
  const int dims = std::max(a.size(), b.size());
  Shape result = Shape::filled(dims, 1);
  for (int i = 0; i < dims; ++i) {
    const int ia = i - (dims - a.size()), ib = i - (dims - b.size());
    const int64_t sa = ia < 0 ? 1 : a[ia], sb = ib < 0 ? 1 : b[ib];
    if (sa != sb && sa != 1 && sb != 1) {
      throw ShapeError(fmt::format("[{}] shapes {} and {} do not broadcast: {} and {} differ at axis {} of the result. "
                                   "Reshape one, or unsqueeze a size of 1.",
                                   op, to_string(a), to_string(b), sa, sb, i));
    }
    result[i] = sa == 1 ? sb : sa;
  }
  return result;
}

Shape broadcast_strides(const Shape& sizes, const Shape& strides, const Shape& target, const char* op) {
  const int lead = target.size() - sizes.size();
  bool fits = lead >= 0;
  Shape result = Shape::filled(target.size(), 0);
  for (int i = 0; fits && i < sizes.size(); ++i) {
    if (sizes[i] == target[lead + i]) {
      result[lead + i] = strides[i];
    } else {
      fits = sizes[i] == 1;
    }
  }
  if (!fits) {
    throw ShapeError(fmt::format("[{}] shape {} does not broadcast to {}: each size must be equal or 1, counted from "
                                 "the right.",
                                 op, to_string(sizes), to_string(target)));
  }
  return result;
}

Shape infer_size(const Shape& requested, int64_t numel, const char* op) {
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < requested.size(); ++i) {
    if (requested[i] == -1 && unknown < 0) {
      unknown = i;
    } else if (requested[i] < 0) {
      throw ShapeError(fmt::format("[{}] shape {} is not valid: sizes are 0 or more, with at most one -1.", op,
                                   to_string(requested)));
    } else {
      known *= requested[i];
    }
  }
  Shape result = requested;
  if (unknown >= 0) {
    if (known == 0) {
      throw ShapeError(fmt::format("[{}] shape {} leaves -1 undetermined beside a size of 0. Write that size out.", op,
                                   to_string(requested)));
    }
    result[unknown] = numel / known;
  }
  if (result.numel() != numel) {
    throw ShapeError(fmt::format("[{}] shape {} does not fit {} elements: its sizes multiply to {}.", op,
                                 to_string(requested), numel, known));
  }
  return result;
}

bool view_strides(const Shape& sizes, const Shape& strides, const Shape& target, Shape& result) {
  if (sizes == target) {
    result = strides;
    return true;
  }
  if (sizes.numel() == 0 || sizes.empty()) {
    result = contiguous_strides(target);
    return true;
  }
  // Loops over the axes from the right. A run of old axes that are contiguous with each other is split into new axes
  // whose sizes have the same product; a new axis that would span two runs needs a copy.
  result = Shape::filled(target.size(), 0);
  int to = target.size() - 1;
  int64_t base = strides.back(), run = 1, taken = 1;
  for (int from = sizes.size() - 1; from >= 0; --from) {
    run *= sizes[from];
    const bool ends = from == 0 || (sizes[from - 1] != 1 && strides[from - 1] != run * base);
    if (!ends) continue;
    while (to >= 0 && (taken < run || target[to] == 1)) {
      result[to] = taken * base;
      taken *= target[to];
      --to;
    }
    if (taken != run) return false;
    if (from > 0) {
      base = strides[from - 1];
      run = taken = 1;
    }
  }
  return to == -1;
}

Shape reduced_sizes(const Shape& sizes, const Shape& axes, bool keepdim) {
  bool reduced[kMaxDims] = {};
  for (const int64_t axis : axes) reduced[axis] = true;
  Shape result;
  for (int i = 0; i < sizes.size(); ++i) {
    if (!reduced[i]) {
      result.push_back(sizes[i]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

}  // namespace levin
