// Padding that repeats places of the tensor: one kernel on the CPU, copies and sums of slices elsewhere.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/record.h>
#include <levin/autograd/trace.h>
#include <levin/kernels/indexing.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <vector>

namespace levin {

using namespace ops;

namespace {

/// Returns the positions 0..size - 1 with `before` and `after` more by the mode.
Tensor padded_positions(PadMode mode, int64_t size, int64_t before, int64_t after) {
  const Tensor i = arange(-before, size + after);
  if (mode == PadMode::replicate) return clamp(i, 0, size - 1);
  if (mode == PadMode::circular) return remainder(i, size);
  const Tensor folded = abs(i);  // reflects at 0, then at size - 1
  return rsub(abs(rsub(folded, size - 1)), size - 1);
}

/// Returns the same on the host, where a capture needs them at once.
std::vector<int64_t> positions_on_host(PadMode mode, int64_t size, int64_t before, int64_t after) {
  std::vector<int64_t> positions;
  for (int64_t i = -before; i < size + after; ++i) {
    positions.push_back(mode == PadMode::replicate  ? std::clamp<int64_t>(i, 0, size - 1)
                        : mode == PadMode::circular ? (i + size) % size
                                                    : size - 1 - std::abs(size - 1 - std::abs(i)));
  }
  return positions;
}

struct AxisPad {
  PadMode mode;
  int axis;
  int64_t size, before, after;

  /// Returns the slices of x that the first (last) pads repeat.
  Tensor source_before(const Tensor& x) const {
    if (mode == PadMode::reflect) return narrow(x, axis, 1, before);
    return mode == PadMode::replicate ? narrow(x, axis, 0, 1) : narrow(x, axis, size - before, before);
  }
  Tensor source_after(const Tensor& x) const {
    if (mode == PadMode::reflect) return narrow(x, axis, size - 1 - after, after);
    return mode == PadMode::replicate ? narrow(x, axis, size - 1, 1) : narrow(x, axis, 0, after);
  }
  /// Returns the pads that these slices give; they broadcast.
  Tensor repeated(const Tensor& slices) const { return mode == PadMode::reflect ? flip(slices, axis) : slices; }
  /// Returns the gradient of the slices from that of the pads.
  Tensor collected(const Tensor& g) const {
    return mode == PadMode::replicate ? sum(g, axis, true) : repeated(g);
  }
};

using AxisPads = std::vector<AxisPad>;  // from the last axis to the first

/// Calls f with the pads as a kernel reads them: by rising axes.
template <class F>
void with_positions(const AxisPads& pads, F&& f) {
  const AxisPads rising(pads.rbegin(), pads.rend());
  std::vector<std::vector<int64_t>> lists;
  std::vector<kernels::PaddedAxis> axes;
  for (const AxisPad& p : rising) lists.push_back(positions_on_host(p.mode, p.size, p.before, p.after));
  for (std::size_t i = 0; i < rising.size(); ++i) axes.push_back({rising[i].axis, rising[i].before, lists[i]});
  f(axes);
}

/// Returns the part of y (whose axes are all padded) in which axis i is padded: without the pads of later axes.
Tensor stage(const Tensor& y, const AxisPads& pads, std::size_t i) {
  Tensor part = y;
  for (std::size_t later = i + 1; later < pads.size(); ++later)
    part = narrow(part, pads[later].axis, pads[later].before, pads[later].size);
  return part;
}

Grads gradient_of_padded(Context& k, const Tensor& g) {
  const auto& pads = k.get<AxisPads>();
  if (grad_enabled()) {
    Tensor dx = g;
    for (std::size_t i = pads.size(); i-- > 0;) {
      const AxisPad& p = pads[i];
      Shape sizes = dx.sizes();
      sizes[p.axis] = p.size;
      const Tensor places = padded_positions(p.mode, p.size, p.before, p.after).to(g.device());
      dx = index_add(zeros(sizes, like(g)), p.axis, places, dx);
    }
    return {dx};
  }
  if (kernels::pad_backward.has(g.device().type) && (g.dtype() == kFloat32 || g.dtype() == kFloat64)) {
    Shape sizes = g.sizes();
    for (const AxisPad& p : pads) sizes[p.axis] = p.size;
    const Tensor dx = empty(sizes, like(g));
    with_positions(pads, [&](auto& axes) {
      launch(kernels::pad_backward, g.device(), {dx.tensor_view(), dense(g).tensor_view(), axes});
    });
    return {dx};
  }
  const Tensor all = clone(g);
  for (std::size_t i = pads.size(); i-- > 0;) {
    const AxisPad& p = pads[i];
    const Tensor part = stage(all, pads, i), dx = narrow(part, p.axis, p.before, p.size);
    if (p.before > 0) p.source_before(dx).add_(p.collected(narrow(part, p.axis, 0, p.before)));
    if (p.after > 0) p.source_after(dx).add_(p.collected(narrow(part, p.axis, p.before + p.size, p.after)));
  }
  return {clone(narrow(stage(all, pads, 0), pads[0].axis, pads[0].before, pads[0].size))};
}

/// Pads axes, in their order, by pads that are not negative. Everything is written to its place in the result.
Tensor padded(const Tensor& x, const AxisPads& pads) {
  if (pads.empty()) return x;
  Shape sizes = x.sizes();
  for (const AxisPad& p : pads) sizes[p.axis] += p.before + p.after;
  const Tensor y = empty(sizes, like(x));
  if (kernels::pad.has(x.device().type) && !x.is_complex()) {
    with_positions(pads, [&](auto& axes) {
      launch(kernels::pad, x.device(), {y.tensor_view(), dense(x).tensor_view(), axes});
    });
  } else {
    no_grad guard;
    const AxisPad& first = pads[0];
    narrow(stage(y, pads, 0), first.axis, first.before, first.size).copy_(x.detach());
    for (std::size_t i = 0; i < pads.size(); ++i) {
      const AxisPad& p = pads[i];
      const Tensor part = stage(y, pads, i), source = narrow(part, p.axis, p.before, p.size);
      if (p.before > 0) narrow(part, p.axis, 0, p.before).copy_(p.repeated(p.source_before(source)));
      if (p.after > 0) narrow(part, p.axis, p.before + p.size, p.after).copy_(p.repeated(p.source_after(source)));
    }
  }
  if (Context* c = record("pad_axes", y, {x}, gradient_of_padded)) c->set(pads);
  return y;
}

}  // namespace

Tensor pad(const Tensor& x, const Shape& pads, PadMode mode, const Scalar& value) {
  if (mode == PadMode::constant) return pad(x, pads, value);
  LEVIN_TRACE_CALL(pad(x, pads, mode, value), "pad_mode", {x}, {{"pads", pads}, {"mode", mode}});
  if (pads.size() % 2 != 0 || pads.size() > 2 * x.dim())
    fail<ValueError>("[pad] {} numbers for x of {}; give a pair for each of the last axes.", pads.size(), x.sizes());
  Tensor y = x;
  AxisPads together;
  for (int pair = 0; 2 * pair < pads.size(); ++pair) {
    const int axis = x.dim() - 1 - pair;
    const int64_t size = x.size(axis), before = pads[2 * pair], after = pads[2 * pair + 1];
    const int64_t limit = mode == PadMode::reflect    ? size - 1
                          : mode == PadMode::circular ? size
                                                      : std::numeric_limits<int64_t>::max();
    if (before > limit || after > limit || size == 0)
      fail<ValueError>("[pad] pads ({}, {}) of axis {} do not fit its size {} in {} mode.", before, after, axis, size,
                       mode == PadMode::reflect    ? "reflect"
                       : mode == PadMode::circular ? "circular"
                                                   : "replicate");
    if (before + size + after < 0)
      fail<ValueError>("[pad] pads ({}, {}) of axis {} remove more than its size {}.", before, after, axis, size);
    if (before == 0 && after == 0) continue;
    if (before >= 0 && after >= 0) {
      together.push_back({mode, axis, size, before, after});
    } else {
      y = index_select(y, axis, padded_positions(mode, size, before, after).to(x.device()));
    }
  }
  return padded(y, together);
}

}  // namespace levin
