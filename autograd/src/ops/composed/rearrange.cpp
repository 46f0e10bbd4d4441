// Joining, repeating and moving parts of tensors.

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

#include <algorithm>
#include <cmath>
#include <numeric>

namespace levin {

using namespace ops;

namespace {

std::vector<Tensor> each(std::span<const Tensor> tensors, Tensor (*f)(const Tensor&)) {
  std::vector<Tensor> result;
  result.reserve(tensors.size());
  for (const Tensor& t : tensors) result.push_back(f(t));
  return result;
}

void require_tensors(const char* op, std::span<const Tensor> tensors) {
  if (tensors.empty()) fail<ValueError>("[{}] the list of tensors is empty; give one at least.", op);
}

void require_vector(const char* op, const Tensor& x) {
  if (x.dim() > 1) fail<ShapeError>("[{}] needs vectors, one is {}.", op, x.sizes());
}

}  // namespace

// Joining

Tensor hstack(std::span<const Tensor> tensors) {
  require_tensors("hstack", tensors);
  const std::vector<Tensor> parts = each(tensors, atleast_1d);
  return cat(parts, parts[0].dim() == 1 ? 0 : 1);
}
Tensor vstack(std::span<const Tensor> tensors) { return cat(each(tensors, atleast_2d), 0); }
Tensor dstack(std::span<const Tensor> tensors) { return cat(each(tensors, atleast_3d), 2); }
Tensor column_stack(std::span<const Tensor> tensors) {
  return cat(each(tensors, [](const Tensor& t) { return t.dim() < 2 ? reshape(t, {t.numel(), 1}) : t; }), 1);
}

Tensor block_diag(std::span<const Tensor> tensors) {
  require_tensors("block_diag", tensors);
  const std::vector<Tensor> blocks = each(tensors, atleast_2d);
  int64_t width = 0, left = 0;
  for (const Tensor& b : blocks) {
    if (b.dim() != 2) fail<ShapeError>("[block_diag] needs matrices, one is {}.", b.sizes());
    width += b.size(1);
  }
  std::vector<Tensor> rows;
  for (const Tensor& b : blocks) {
    rows.push_back(pad(b, {left, width - left - b.size(1)}));
    left += b.size(1);
  }
  return cat(rows, 0);
}

std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, Indexing indexing) {
  require_tensors("meshgrid", tensors);
  const int n = static_cast<int>(tensors.size());
  Shape sizes;
  for (const Tensor& t : tensors) {
    require_vector("meshgrid", t);
    sizes.push_back(t.numel());
  }
  std::vector<Tensor> grids;
  for (int i = 0; i < n; ++i) {
    const Tensor grid = expand(along_axis(tensors[static_cast<std::size_t>(i)], i, n), sizes);
    grids.push_back(indexing == Indexing::xy && n > 1 ? transpose(grid, 0, 1) : grid);
  }
  return grids;
}

Tensor cartesian_prod(std::span<const Tensor> tensors) {
  if (tensors.size() == 1) return tensors[0];
  return stack(each(meshgrid(tensors), ravel), 1);
}

Tensor combinations(const Tensor& x, int64_t r, bool with_replacement) {
  require_vector("combinations", x);
  if (r < 0) fail<ValueError>("[combinations] r is {}. Give 0 or more.", r);
  const int64_t n = x.numel(), first_free = with_replacement ? 0 : 1;
  std::vector<int64_t> chosen(static_cast<std::size_t>(r)), rows;
  for (int64_t i = 0; i < r; ++i) chosen[static_cast<std::size_t>(i)] = i * first_free;
  bool more = r > 0 && (with_replacement ? n > 0 : r <= n);
  while (more) {
    rows.insert(rows.end(), chosen.begin(), chosen.end());
    int64_t i = r - 1;  // the last position that can still grow
    while (i >= 0 && chosen[static_cast<std::size_t>(i)] == n - 1 - (r - 1 - i) * first_free) --i;
    more = i >= 0;
    for (int64_t next = more ? chosen[static_cast<std::size_t>(i)] + 1 : 0; more && i < r; ++i, next += first_free)
      chosen[static_cast<std::size_t>(i)] = next;
  }
  if (r == 0) return narrow(x, 0, 0, 0);
  const auto count = static_cast<int64_t>(rows.size()) / r;
  return reshape(index_select(reshape(x, {n}), 0, from_data(rows, {count * r}).to(x.device())), {count, r});
}

// Repeating and broadcasting

Tensor repeat(const Tensor& x, const Shape& counts) {
  const int added = counts.size() - x.dim();
  if (added < 0)
    fail<ShapeError>("[repeat] {} counts for x of {}; give one for each axis, or use tile().", counts.size(),
                     x.sizes());
  Shape result;
  for (int i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) fail<ValueError>("[repeat] count {} of axis {} is negative.", counts[i], i);
    const int64_t size = i < added ? 1 : x.size(i - added);
    result.push_back(size * counts[i]);
  }
  // One axis after the other, so that no more than one axis is added at a time.
  Tensor y = reshape(x, joined(Shape::filled(added, 1), x.sizes()));
  for (int i = counts.size() - 1; i >= 0; --i) {
    if (counts[i] == 1) continue;
    const Around a = around(y.sizes(), i);
    Shape sizes = y.sizes();
    sizes[i] *= counts[i];
    y = reshape(expand(reshape(y, {a.outer, 1, a.n * a.inner}), {a.outer, counts[i], a.n * a.inner}), sizes);
  }
  return reshape(y, result);
}

Tensor tile(const Tensor& x, const Shape& counts) {
  return repeat(x, joined(Shape::filled(std::max(0, x.dim() - counts.size()), 1), counts));
}

Tensor repeat_interleave(const Tensor& x, int64_t count, std::optional<int64_t> axis) {
  if (count < 0) fail<ValueError>("[repeat_interleave] the count {} is negative.", count);
  const Tensor source = axis && x.dim() > 0 ? x : ravel(x);
  const int along = wrap_axis(axis.value_or(0), source.dim(), "repeat_interleave");
  Shape sizes = source.sizes();
  const Around a = around(sizes, along);
  const int64_t before = a.outer * a.n, after = a.inner;
  sizes[along] *= count;
  return reshape(expand(reshape(source, {before, 1, after}), {before, count, after}), sizes);
}

Tensor repeat_interleave(const Tensor& x, const Tensor& counts, std::optional<int64_t> axis) {
  const Tensor source = axis && x.dim() > 0 ? x : ravel(x);
  const int along = wrap_axis(axis.value_or(0), source.dim(), "repeat_interleave");
  const Tensor repeats = as_int64("repeat_interleave", {"counts", counts});
  if (repeats.numel() == 1) return repeat_interleave(source, repeats.item<int64_t>(), along);
  if (repeats.dim() != 1 || repeats.numel() != source.size(along))
    fail<ShapeError>("[repeat_interleave] counts is {}, but axis {} of {} needs ({},).", counts.sizes(), along,
                     source.sizes(), source.size(along));
  std::vector<int64_t> positions;
  const std::vector<int64_t> list = repeats.to_vector<int64_t>();
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i] < 0) fail<ValueError>("[repeat_interleave] the count {} is negative.", list[i]);
    positions.insert(positions.end(), static_cast<std::size_t>(list[i]), static_cast<int64_t>(i));
  }
  return index_select(source, along,
                      from_data(positions, {static_cast<int64_t>(positions.size())}).to(source.device()));
}

Tensor broadcast_to(const Tensor& x, const Shape& sizes) { return expand(x, sizes); }

std::vector<Tensor> broadcast_tensors(std::span<const Tensor> tensors) {
  Shape sizes;
  for (const Tensor& t : tensors) sizes = broadcast_shapes(sizes, t.sizes(), "broadcast_tensors");
  std::vector<Tensor> result;
  for (const Tensor& t : tensors) result.push_back(expand(t, sizes));
  return result;
}

Tensor expand_as(const Tensor& x, const Tensor& other) { return expand(x, other.sizes()); }
Tensor view_as(const Tensor& x, const Tensor& other) { return view(x, other.sizes()); }
Tensor reshape_as(const Tensor& x, const Tensor& other) { return reshape(x, other.sizes()); }

// Moving axes and elements

Tensor movedim(const Tensor& x, const Axes& source, const Axes& destination) {
  if (source.size() != destination.size())
    fail<ValueError>("[movedim] {} axes cannot move to {} places.", source.size(), destination.size());
  const Shape from = source.empty() ? Shape() : wrap_axes(source, x.dim(), "movedim");
  const Shape to = source.empty() ? Shape() : wrap_axes(destination, x.dim(), "movedim");
  Shape order = Shape::filled(x.dim(), -1);
  // wrap_axes sorts neither list, so that pairs stay pairs.
  for (int i = 0; i < from.size(); ++i) order[static_cast<int>(to[i])] = from[i];
  int next = 0;
  for (int64_t& place : order) {
    if (place >= 0) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    place = next++;
  }
  return permute(x, order);
}
Tensor moveaxis(const Tensor& x, const Axes& source, const Axes& destination) {
  return movedim(x, source, destination);
}
Tensor swapaxes(const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }
Tensor swapdims(const Tensor& x, int64_t a, int64_t b) { return transpose(x, a, b); }

Tensor unflatten(const Tensor& x, int64_t axis, const Shape& sizes) {
  const int along = wrap_axis(axis, x.dim(), "unflatten");
  const Shape parts = infer_size(sizes, x.size(along), "unflatten");
  Shape result(x.sizes().begin(), x.sizes().begin() + along);
  for (const int64_t n : parts) result.push_back(n);
  for (int i = along + 1; i < x.dim(); ++i) result.push_back(x.size(i));
  return reshape(x, result);
}

Tensor ravel(const Tensor& x) { return reshape(x, {x.numel()}); }
Tensor atleast_1d(const Tensor& x) { return x.dim() == 0 ? reshape(x, {1}) : x; }
Tensor atleast_2d(const Tensor& x) { return x.dim() == 0 ? reshape(x, {1, 1}) : x.dim() == 1 ? unsqueeze(x, 0) : x; }
Tensor atleast_3d(const Tensor& x) { return x.dim() <= 2 ? unsqueeze(atleast_2d(x), 2) : x; }

namespace {

/// Copies x rolled by shifts along axes [i, n) to y: two parts for each axis, so every element is copied once.
void copy_rolled(const Tensor& y, const Tensor& x, const Shape& shifts, const Axes& axes, int i) {
  if (i == axes.size()) {
    y.copy_(x);
    return;
  }
  const int64_t axis = axes[i], size = x.size(axis), moved = (shifts[i] % size + size) % size, kept = size - moved;
  copy_rolled(narrow(y, axis, moved, kept), narrow(x, axis, 0, kept), shifts, axes, i + 1);
  if (moved > 0) copy_rolled(narrow(y, axis, 0, moved), narrow(x, axis, kept, moved), shifts, axes, i + 1);
}

struct Roll {
  Shape shifts;
  Axes axes;
};

/// Rolls along different axes.
Tensor rolled(const Tensor& x, const Roll& r) {
  Tensor y = empty(x.sizes(), like(x));
  if (x.numel() > 0) {
    no_grad guard;
    copy_rolled(y, x.detach(), r.shifts, r.axes, 0);
  }
  if (Context* c = record("roll", y, {x}, [](Context& k, const Tensor& g) -> Grads {
        Roll back = k.get<Roll>();
        for (int64_t& shift : back.shifts) shift = -shift;
        return {rolled(g, back)};
      }))
    c->set(r);
  return y;
}

}  // namespace

Tensor roll(const Tensor& x, const Shape& shifts, const Axes& axes) {
  if (axes.empty()) {
    if (shifts.size() != 1)
      fail<ValueError>("[roll] {} shifts without axes; give one shift, or an axis for each.", shifts.size());
    return reshape(roll(ravel(x), shifts, 0), x.sizes());
  }
  LEVIN_TRACE_CALL(roll(x, shifts, axes), "roll", {x}, {{"shifts", shifts}, {"axes", axes}});
  if (shifts.size() != axes.size())
    fail<ValueError>("[roll] {} shifts for {} axes; give one for each.", shifts.size(), axes.size());
  Roll total;  // shifts along the same axis add up
  for (int i = 0; i < axes.size(); ++i) {
    const int along = wrap_axis(axes[i], x.dim(), "roll");
    const auto* const known = std::find(total.axes.begin(), total.axes.end(), along);
    if (known != total.axes.end()) {
      total.shifts[static_cast<int>(known - total.axes.begin())] += shifts[i];
    } else {
      total.axes.push_back(along);
      total.shifts.push_back(shifts[i]);
    }
  }
  return rolled(x, total);
}

Tensor rot90(const Tensor& x, int64_t k, std::array<int64_t, 2> axes) {
  const int a = wrap_axis(axes[0], x.dim(), "rot90"), b = wrap_axis(axes[1], x.dim(), "rot90");
  if (a == b) fail<ValueError>("[rot90] axes {} and {} are the same.", axes[0], axes[1]);
  switch ((k % 4 + 4) % 4) {
    case 1:
      return transpose(flip(x, b), a, b);
    case 2:
      return flip(x, Axes{a, b});
    case 3:
      return flip(transpose(x, a, b), b);
    default:
      return clone(x);
  }
}
Tensor fliplr(const Tensor& x) { return flip(x, 1); }
Tensor flipud(const Tensor& x) { return flip(x, 0); }

std::vector<Tensor> split(const Tensor& x, int64_t size, int64_t axis) {
  if (size <= 0) fail<ValueError>("[split] size {} is not positive.", size);
  const int a = wrap_axis(axis, x.dim(), "split");
  if (x.dim() == 0) throw ShapeError("[split] a 0-dim tensor has no axis to split.");
  std::vector<int64_t> sizes;
  for (int64_t at = 0; at < x.sizes()[a] || at == 0; at += size) sizes.push_back(std::min(size, x.sizes()[a] - at));
  return split(x, sizes, a);
}

std::vector<Tensor> chunk(const Tensor& x, int64_t chunks, int64_t axis) {
  if (chunks <= 0) fail<ValueError>("[chunk] {} chunks; use 1 or more.", chunks);
  const int64_t length = x.size(axis);
  if (length == 0) return split(x, std::vector<int64_t>(static_cast<std::size_t>(chunks), 0), axis);
  return split(x, std::max<int64_t>(1, (length + chunks - 1) / chunks), axis);
}

std::vector<Tensor> unbind(const Tensor& x, int64_t axis) {
  const int a = wrap_axis(axis, x.dim(), "unbind");
  std::vector<Tensor> parts;
  if (x.dim() == 0) throw ShapeError("[unbind] a 0-dim tensor has no axis.");
  if (x.sizes()[a] == 0) return parts;
  for (const Tensor& part : split(x, 1, a)) parts.push_back(squeeze(part, a));
  return parts;
}

std::vector<Tensor> tensor_split(const Tensor& x, int64_t sections, int64_t axis) {
  if (sections < 1) fail<ValueError>("[tensor_split] {} sections. Give 1 or more.", sections);
  const int along = wrap_axis(axis, x.dim(), "tensor_split");
  const int64_t size = x.size(along);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < sections; ++i) sizes.push_back(size / sections + (i < size % sections ? 1 : 0));
  return split(x, sizes, along);
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& positions, int64_t axis) {
  const int along = wrap_axis(axis, x.dim(), "tensor_split");
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (std::size_t i = 0; i <= positions.size(); ++i) {
    const bool last = i == positions.size();
    parts.push_back(slice(x, along, last ? Slice(start, nil) : Slice(start, positions[i])));
    if (!last) start = positions[i];
  }
  return parts;
}

namespace {

void check_image(const char* op, const Tensor& x, int64_t factor, bool divides) {
  if (x.dim() < 3 || factor < 1 || !divides)
    fail<ShapeError>("[{}] {} does not fit the factor {}.", op, x.sizes(), factor);
}

/// Splits along the axis that the rows (1), columns (0) or layers (2) of x have.
template <class Sections>
std::vector<Tensor> split_along(const char* op, const Tensor& x, int axis, const Sections& sections) {
  if (x.dim() <= axis) fail<ShapeError>("[{}] x is {}, more axes are needed.", op, x.sizes());
  if constexpr (std::is_same_v<Sections, int64_t>)
    if (sections < 1 || x.size(axis) % sections != 0)
      fail<ValueError>("[{}] axis {} of {} does not divide into {} sections.", op, axis, x.sizes(), sections);
  return tensor_split(x, sections, axis);
}
int rows_of(const Tensor& x) { return x.dim() == 1 ? 0 : 1; }

}  // namespace

std::vector<Tensor> hsplit(const Tensor& x, int64_t n) { return split_along("hsplit", x, rows_of(x), n); }
std::vector<Tensor> hsplit(const Tensor& x, const std::vector<int64_t>& at) {
  return split_along("hsplit", x, rows_of(x), at);
}
std::vector<Tensor> vsplit(const Tensor& x, int64_t n) { return split_along("vsplit", x, 0, n); }
std::vector<Tensor> vsplit(const Tensor& x, const std::vector<int64_t>& at) { return split_along("vsplit", x, 0, at); }
std::vector<Tensor> dsplit(const Tensor& x, int64_t n) { return split_along("dsplit", x, 2, n); }
std::vector<Tensor> dsplit(const Tensor& x, const std::vector<int64_t>& at) { return split_along("dsplit", x, 2, at); }

Tensor pixel_shuffle(const Tensor& x, int64_t r) {
  check_image("pixel_shuffle", x, r, x.dim() >= 3 && r > 0 && x.size(-3) % (r * r) == 0);
  const int64_t c = x.size(-3) / (r * r), h = x.size(-2), w = x.size(-1);
  const Shape batch = leading(x, 3);
  const Tensor parts = reshape(x, {batch.numel(), c, r, r, h, w});
  return reshape(permute(parts, {0, 1, 4, 2, 5, 3}), joined(batch, {c, h * r, w * r}));
}

Tensor pixel_unshuffle(const Tensor& x, int64_t r) {
  check_image("pixel_unshuffle", x, r, x.dim() >= 3 && r > 0 && x.size(-2) % r == 0 && x.size(-1) % r == 0);
  const int64_t c = x.size(-3), h = x.size(-2) / r, w = x.size(-1) / r;
  const Shape batch = leading(x, 3);
  const Tensor parts = reshape(x, {batch.numel(), c, h, r, w, r});
  return reshape(permute(parts, {0, 1, 3, 5, 2, 4}), joined(batch, {c * r * r, h, w}));
}

Tensor channel_shuffle(const Tensor& x, int64_t groups) {
  check_image("channel_shuffle", x, groups, x.dim() >= 2 && groups > 0 && x.size(1) % groups == 0);
  const int64_t c = x.size(1);
  return reshape(transpose(reshape(x, {x.size(0), groups, c / groups, -1}), 1, 2), x.sizes());
}

// Lists in braces

#define LEVIN_LIST(result, name) \
  result name(std::initializer_list<Tensor> tensors) { return name(std::span<const Tensor>(tensors)); }
LEVIN_LIST(Tensor, hstack)
LEVIN_LIST(Tensor, vstack)
LEVIN_LIST(Tensor, dstack)
LEVIN_LIST(Tensor, column_stack)
LEVIN_LIST(Tensor, block_diag)
LEVIN_LIST(Tensor, cartesian_prod)
LEVIN_LIST(std::vector<Tensor>, broadcast_tensors)
#undef LEVIN_LIST
std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors, Indexing indexing) {
  return meshgrid(std::span<const Tensor>(tensors), indexing);
}

}  // namespace levin
