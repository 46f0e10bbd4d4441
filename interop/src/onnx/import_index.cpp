// Operators of ONNX that read or write at positions. Negative positions count from the end.

#include "interpreter.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/image.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/view.h>

#include <fmt/format.h>

#include <algorithm>

namespace levin::interop::onnx {

namespace import_index {
namespace {

Tensor from_front(const Tensor& index, std::int64_t size) {
  const Tensor i = to(index, kInt64);
  return where(lt(i, 0), add(i, size), i);
}

Tensors gather_node(const Call& c) {
  const Tensor x = c[0], index = c[1];
  const int axis = c.axis("axis", 0, x.dim());
  const Tensor at = from_front(index, x.size(axis));
  if (x.is_floating() && x.dim() == 2 && axis == 0 && at.dim() > 0) return {embedding(x, at)};
  const Tensor y = index_select(x, axis, reshape(at, {at.numel()}));
  Shape sizes(x.sizes().begin(), x.sizes().begin() + axis);
  for (const std::int64_t n : at.sizes()) sizes.push_back(n);
  for (int d = axis + 1; d < x.dim(); ++d) sizes.push_back(x.sizes()[d]);
  return {reshape(y, sizes)};
}

Tensors gather_elements(const Call& c) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", 0, x.dim());
  return {gather(x, axis, from_front(c[1], x.size(axis)))};
}

/// Index tuples (..., k) into the first k axes as positions in those axes seen as one.
Tensor flat_positions(const Call& c, const Tensor& x, const Tensor& index) {
  const std::int64_t k = index.dim() > 0 ? index.size(-1) : 0;
  if (k < 1 || k > x.dim()) c.refuse(fmt::format("tuples of {} index {}", k, to_string(x.sizes())));
  Tensor at;
  for (int d = 0; d < k; ++d) {
    const Tensor i = from_front(select(index, -1, d), x.size(d));
    at = at.defined() ? add(mul(at, x.size(d)), i) : i;
  }
  return at;
}

struct Lines {
  Tensor at;    ///< (n)
  Tensor rows;  ///< x as (places, elements of a slice)
  Shape rest;   ///< sizes of a slice
};

Lines lines_of(const Call& c, const Tensor& x, const Tensor& index) {
  const Tensor at = flat_positions(c, x, index);
  Lines l{reshape(at, {at.numel()}), {}, Shape(x.sizes().begin() + index.size(-1), x.sizes().end())};
  l.rows = reshape(x, {x.numel() / std::max<std::int64_t>(l.rest.numel(), 1), l.rest.numel()});
  return l;
}

Tensors gather_nd(const Call& c) {
  if (c.integer("batch_dims", 0) != 0) c.refuse("batch_dims is not 0");
  const Tensor x = c[0], index = c[1];
  const Lines l = lines_of(c, x, index);
  Shape sizes(index.sizes().begin(), index.sizes().end() - 1);
  for (const std::int64_t n : l.rest) sizes.push_back(n);
  return {reshape(index_select(l.rows, 0, l.at), sizes)};
}

Tensor written(const Call& c, const Tensor& x, int axis, const Tensor& at, const Tensor& source) {
  const std::string_view reduction = c.text("reduction", "none");
  if (reduction == "none") return scatter(x, axis, at, source);
  if (reduction == "add") return scatter_add(x, axis, at, source);
  if (reduction == "mul") return scatter_reduce(x, axis, at, source, ScatterReduce::prod);
  if (reduction == "max") return scatter_reduce(x, axis, at, source, ScatterReduce::amax);
  if (reduction == "min") return scatter_reduce(x, axis, at, source, ScatterReduce::amin);
  c.refuse(fmt::format("the reduction is \"{}\"", reduction));
}

Tensors scatter_elements(const Call& c) {
  const Tensor x = c[0];
  const int axis = c.axis("axis", 0, x.dim());
  return {written(c, x, axis, from_front(c[1], x.size(axis)), c[2])};
}

Tensors scatter_nd(const Call& c) {
  const Tensor x = c[0];
  const Lines l = lines_of(c, x, c[1]);
  const Tensor source = reshape(c[2], {l.at.numel(), l.rest.numel()});
  const Tensor at = contiguous(expand(unsqueeze(l.at, 1), source.sizes()));
  return {reshape(written(c, l.rows, 0, at, source), x.sizes())};
}

Tensors one_hot_node(const Call& c) {
  const Tensor values = c[2];
  if (values.numel() != 2) c.refuse("values are not two numbers");
  const std::int64_t depth = c.number(1);
  const Tensor at = from_front(c[0], depth);
  const Tensor outside = logical_or(lt(at, 0), ge(at, depth));
  Tensor hot = one_hot(masked_fill(at, outside, 0), depth);
  hot = masked_fill(hot, unsqueeze(outside, -1), 0);
  const int axis = c.axis("axis", -1, hot.dim());
  hot = movedim(ne(hot, 0), -1, axis);
  return {where(hot, select(values, 0, 1), select(values, 0, 0))};
}

Tensors non_zero(const Call& c) { return {transpose(nonzero(c[0]), 0, 1)}; }

Tensors reverse_sequence(const Call& c) {
  const Tensor x = c[0];
  const int time = c.axis("time_axis", 0, x.dim()), batch = c.axis("batch_axis", 1, x.dim());
  const auto lengths = c.list(1);
  if (static_cast<std::int64_t>(lengths.size()) != x.size(batch)) c.refuse("the lengths do not fit the batch");
  Tensors parts;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const Tensor part = narrow(x, batch, static_cast<std::int64_t>(b), 1);
    const std::int64_t n = lengths[b];
    if (n < 0 || n > x.size(time)) c.refuse(fmt::format("length {} is not within {} steps", n, x.size(time)));
    parts.push_back(cat({flip(narrow(part, time, 0, n), time), narrow(part, time, n, x.size(time) - n)}, time));
  }
  return {cat(parts, batch)};
}

const ImportRow kRows[] = {
    {"Gather", 1, gather_node},    {"GatherElements", 11, gather_elements},
    {"GatherND", 11, gather_nd},   {"ScatterElements", 11, scatter_elements},
    {"ScatterND", 11, scatter_nd}, {"OneHot", 9, one_hot_node},
    {"NonZero", 9, non_zero},      {"ReverseSequence", 10, reverse_sequence},
};

}  // namespace
}  // namespace import_index

std::span<const ImportRow> index_import_rows() { return import_index::kRows; }

}  // namespace levin::interop::onnx
