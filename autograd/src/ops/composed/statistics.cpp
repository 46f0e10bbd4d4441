// Order statistics, scans and counts, composed of sorts, reductions and scatters.

#include "../../errors.h"
#include "../values.h"

#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/statistics.h>
#include <levin/autograd/ops/view.h>

#include <levin/autograd/ops/matmul.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

namespace levin {

using namespace ops;

VarMean var_mean(const Tensor& x, const Axes& axes, double correction, bool keepdim) {
  return {var(x, axes, correction, keepdim), mean(x, axes, keepdim)};
}
StdMean std_mean(const Tensor& x, const Axes& axes, double correction, bool keepdim) {
  return {levin::std(x, axes, correction, keepdim), mean(x, axes, keepdim)};
}
MinMax aminmax(const Tensor& x, const Axes& axes, bool keepdim) {
  return {amin(x, axes, keepdim), amax(x, axes, keepdim)};
}

Tensor nansum(const Tensor& x, const Axes& axes, bool keepdim) {
  return sum(x.is_floating() ? masked_fill(x, isnan(x), 0) : x, axes, keepdim);
}
Tensor nanmean(const Tensor& x, const Axes& axes, bool keepdim) {
  check_floating("nanmean", x);
  const Tensor count = sum(logical_not(isnan(x)), axes, keepdim);
  return div(nansum(x, axes, keepdim), to(count, x.dtype()));
}
Tensor count_nonzero(const Tensor& x, const Axes& axes) { return sum(ne(x.detach(), 0), axes); }
Tensor dist(const Tensor& a, const Tensor& b, double p) { return norm(sub(a, b), p); }

// Order statistics

namespace {

ValuesIndices without_axis(const ValuesIndices& at, int64_t axis, bool keepdim) {
  return keepdim ? at : ValuesIndices{squeeze(at.values, axis), squeeze(at.indices, axis)};
}

/// Returns the values of x, or of x as a vector without an axis, and the axis.
std::pair<Tensor, int> along(const char* op, const Tensor& x, std::optional<int64_t> axis) {
  const Tensor source = axis && x.dim() > 0 ? x : ravel(x);
  return {source, wrap_axis(axis.value_or(0), source.dim(), op)};
}

}  // namespace

ValuesIndices median(const Tensor& x, int64_t axis, bool keepdim) {
  const int at = wrap_axis(axis, x.dim(), "median");
  const int64_t size = x.dim() > 0 ? x.size(at) : 1;
  if (size == 0) fail<ShapeError>("[median] axis {} of {} is empty.", axis, x.sizes());
  ValuesIndices middle = kthvalue(x, (size + 1) / 2, at, keepdim);
  if (!x.is_floating() || x.dim() == 0) return middle;
  const Tensor missing = isnan(x), first = argmax(missing.to(kUInt8), at, true);
  const Tensor any_missing = gather(missing, at, first);
  const Tensor index = where(any_missing, first, keepdim ? middle.indices : unsqueeze(middle.indices, at));
  return without_axis({gather(x, at, index), index}, at, keepdim);
}
Tensor median(const Tensor& x) {
  if (x.numel() == 0 && x.is_floating()) return full({}, NAN, like(x));
  return x.dim() == 0 ? clone(x) : median(ravel(x), 0).values;
}

ValuesIndices mode(const Tensor& x, int64_t axis, bool keepdim) {
  const int at = wrap_axis(axis, x.dim(), "mode");
  if (x.dim() == 0) return {clone(x), zeros({}, {.dtype = kInt64, .device = x.device()})};
  const ValuesIndices sorted = sort(x.detach(), at);
  const Tensor last = movedim(sorted.values, at, -1), order = movedim(sorted.indices, at, -1);
  // NaN equals nothing, and counts once.
  const Tensor counts = clamp(sub(searchsorted(last, last, true), searchsorted(last, last)), 1);
  // argmax finds the first of the most frequent values, which starts its run; the run's last element is its last
  // occurrence, because the sort is stable.
  const Tensor run = argmax(counts, -1, true), end = sub(add(run, gather(counts, -1, run)), 1);
  const Tensor index = movedim(gather(order, -1, end), -1, at);
  return without_axis({gather(x, at, index), index}, at, keepdim);
}

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<int64_t> axis, bool keepdim,
                QuantileMethod interpolation) {
  check_floating("quantile", x);
  const auto [source, at] = along("quantile", x, axis);
  const int64_t n = source.size(at);
  if (q.dim() > 1) fail<ShapeError>("[quantile] q is {}, expected is () or (Q,).", q.sizes());
  if (n == 0) fail<ShapeError>("[quantile] x of {} is empty.", x.sizes());
  if (any(logical_not(logical_and(ge(q, 0), le(q, 1)))).item<bool>())
    throw ValueError("[quantile] q has an element outside [0, 1].");
  const Tensor sorted = movedim(sort(source, at).values, at, -1);  // (..., n)
  const Tensor missing = unsqueeze(any(isnan(sorted), -1), -1);
  const Tensor rank = mul(to(ravel(q.detach()), x.dtype()), static_cast<double>(n - 1));
  const Tensor low = floor(rank), high = ceil(rank);
  const auto element = [&](const Tensor& position) { return index_select(sorted, -1, to(position, kInt64)); };
  Tensor y;
  switch (interpolation) {
    case QuantileMethod::linear:
      y = lerp(element(low), element(high), sub(rank, low));
      break;
    case QuantileMethod::lower:
      y = element(low);
      break;
    case QuantileMethod::higher:
      y = element(high);
      break;
    case QuantileMethod::midpoint:
      y = lerp(element(low), element(high), mul(ceil(sub(rank, low)), 0.5));
      break;
    case QuantileMethod::nearest:
      y = element(round(rank));
      break;
  }
  y = movedim(masked_fill(y, missing, NAN), -1, 0);  // (Q, ...)
  if (keepdim) {
    Shape sizes = axis ? x.sizes() : Shape::filled(x.dim(), 1);
    if (axis && x.dim() > 0) sizes[at] = 1;
    sizes.insert(0, y.size(0));
    y = reshape(y, sizes);
  }
  return q.dim() == 0 ? select(y, 0, 0) : y;
}

Tensor quantile(const Tensor& x, double q, std::optional<int64_t> axis, bool keepdim, QuantileMethod interpolation) {
  return quantile(x, full({}, q, {.dtype = kFloat64, .device = x.device()}), axis, keepdim, interpolation);
}

ValuesIndices nanmedian(const Tensor& x, int64_t axis, bool keepdim) {
  if (!x.is_floating() || x.dim() == 0) return median(x, axis, keepdim);
  const int at = wrap_axis(axis, x.dim(), "nanmedian");
  if (x.size(at) == 0) fail<ShapeError>("[nanmedian] axis {} of {} is empty.", axis, x.sizes());
  // NaN comes last in the order.
  const Tensor order = argsort(x.detach(), at), count = sum(logical_not(isnan(x)), at, true);
  const Tensor middle = clamp(floor_divide(sub(count, 1), 2), 0);
  const Tensor index = gather(order, at, middle);
  return without_axis({gather(x, at, index), index}, at, keepdim);
}
Tensor nanmedian(const Tensor& x) { return x.dim() == 0 ? clone(x) : nanmedian(ravel(x), 0).values; }

Tensor cov(const Tensor& x, int64_t correction) {
  if (x.dim() > 2) fail<ShapeError>("[cov] x is {}, expected is (variables, observations).", x.sizes());
  const Tensor rows = x.dim() == 2 ? x : reshape(x, {1, -1});
  const Tensor values = x.is_floating() ? rows : rows.to(kFloat32);
  const Tensor centered = sub(values, mean(values, 1, true));
  const auto freedom = static_cast<double>(std::max<int64_t>(0, values.size(1) - correction));
  const Tensor c = div(matmul(centered, centered.t()), freedom);
  return x.dim() == 2 ? c : reshape(c, {});
}
Tensor corrcoef(const Tensor& x) {
  const Tensor c = cov(x);
  if (x.dim() < 2) return div(c, c);
  const Tensor deviation = sqrt(diagonal(c));
  return clamp(div(div(c, unsqueeze(deviation, 1)), unsqueeze(deviation, 0)), -1, 1);
}

// Differences

Tensor diff(const Tensor& x, int64_t n, int64_t axis) {
  const int at = wrap_axis(axis, x.dim(), "diff");
  if (x.dim() == 0) throw ShapeError("[diff] x has no axis.");
  if (n < 0) fail<ValueError>("[diff] n is {}. Give 0 or more.", n);
  Tensor y = x;
  for (; n > 0; --n) {
    const int64_t size = std::max<int64_t>(0, y.size(at) - 1);
    const Tensor after = narrow(y, at, y.size(at) - size, size), before = narrow(y, at, 0, size);
    y = x.dtype() == kBool ? logical_xor(after, before) : sub(after, before);
  }
  return y;
}

Tensor trapezoid(const Tensor& y, double dx, int64_t axis) {
  const int at = wrap_axis(axis, y.dim(), "trapezoid");
  const int64_t n = std::max<int64_t>(0, y.size(at) - 1);
  return mul(sum(add(narrow(y, at, y.size(at) - n, n), narrow(y, at, 0, n)), at), dx / 2);
}
Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t axis) {
  const int at = wrap_axis(axis, y.dim(), "trapezoid");
  const int64_t n = std::max<int64_t>(0, y.size(at) - 1);
  const Tensor widths = x.dim() == 1 ? along_axis(diff(x), at, y.dim()) : diff(x, 1, at);
  return mul(sum(mul(add(narrow(y, at, y.size(at) - n, n), narrow(y, at, 0, n)), widths), at), 0.5);
}

Tensor cumulative_trapezoid(const Tensor& y, double dx, int64_t axis) {
  const int at = wrap_axis(axis, y.dim(), "cumulative_trapezoid");
  const int64_t n = y.size(at);
  if (n == 0) return clone(y);
  return mul(cumsum(add(narrow(y, at, 1, n - 1), narrow(y, at, 0, n - 1)), at), dx / 2);
}

// Counts

Tensor bincount(const Tensor& x, const Tensor& weights, int64_t minlength) {
  const Tensor numbers = as_int64("bincount", {"x", x.dtype() == kBool || x.is_floating() ? x : to(x, kInt64)});
  if (x.dim() != 1) fail<ShapeError>("[bincount] needs a vector, x is {}.", x.sizes());
  if (weights.defined() && weights.sizes() != x.sizes())
    fail<ShapeError>("[bincount] weights is {}, and x is {}.", weights.sizes(), x.sizes());
  int64_t bins = minlength;
  if (x.numel() > 0) {
    const auto lowest = amin(numbers).item<int64_t>();
    if (lowest < 0) fail<ValueError>("[bincount] x has the negative number {}.", lowest);
    bins = std::max(bins, amax(numbers).item<int64_t>() + 1);
  }
  const TensorOptions as = {.dtype = weights.defined() ? weights.dtype() : kInt64, .device = x.device()};
  return scatter_add(zeros({bins}, as), 0, numbers, weights.defined() ? weights.detach() : ones(x.sizes(), as));
}

Tensor histc(const Tensor& x, int64_t bins, double min, double max) {
  check_floating("histc", x);
  if (bins < 1) fail<ValueError>("[histc] bins is {}. Give 1 or more.", bins);
  const Tensor values = ravel(x.detach());
  if (min == max && x.numel() > 0) {
    min = amin(values).item<double>();
    max = amax(values).item<double>();
  }
  if (min == max) {
    min -= 1;
    max += 1;
  }
  if (!(min < max) || !std::isfinite(max - min))
    fail<ValueError>("[histc] the range [{}, {}] is not a finite interval.", min, max);
  const Tensor inside = logical_and(ge(values, min), le(values, max));
  const Tensor place = floor(mul(div(sub(values, min), max - min), bins));
  const Tensor index = to(clamp(masked_fill(place, logical_not(inside), 0), 0, bins - 1), kInt64);
  return scatter_add(zeros({bins}, like(x)), 0, index, to(inside, x.dtype()));
}

namespace {

/// Returns the elements of a sequence at `index`, of the index's sizes.
Tensor elements_at(const Tensor& sequence, const Tensor& index) {
  if (sequence.dim() > 1) return gather(sequence, -1, index);
  return reshape(index_select(sequence, 0, ravel(index)), index.sizes());
}

}  // namespace

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, bool right) {
  const Tensor sequence = sorted_sequence.detach(), v = values.detach();
  if (sequence.dim() == 0) throw ShapeError("[searchsorted] the sequence has no axis.");
  if (sequence.dim() > 1 && (v.dim() == 0 || leading(v, 1) != leading(sequence, 1)))
    fail<ShapeError>("[searchsorted] values is {}, but a sequence of {} needs values with its leading sizes.",
                     v.sizes(), sequence.sizes());
  const int64_t n = sequence.size(-1);
  const auto comes_before = [&](const Tensor& edge) { return right ? le(edge, v) : lt(edge, v); };
  // By bisection: `count` elements are known to come before a value, and at most `rest` more do.
  Tensor count = zeros(v.sizes(), {.dtype = kInt64, .device = v.device()});
  for (int64_t rest = n; rest > 0; rest /= 2) {
    const int64_t step = (rest + 1) / 2;
    const Tensor edge = elements_at(narrow(sequence, -1, step - 1, n - step + 1), count);
    count = where(comes_before(edge), add(count, step), count);
  }
  return v.is_floating() ? where(isnan(v), n, count) : count;  // a value comes before NaN, which sorts last
}
Tensor bucketize(const Tensor& x, const Tensor& boundaries, bool right) {
  if (boundaries.dim() != 1)
    fail<ShapeError>("[bucketize] boundaries is {}, expected is a vector.", boundaries.sizes());
  return searchsorted(boundaries, x, right);
}

namespace {

/// Groups equal neighbours of the vector v.
Unique runs_of(const Tensor& v) {
  const TensorOptions integers = {.dtype = kInt64, .device = v.device()};
  if (v.numel() == 0) return {v, zeros({0}, integers), zeros({0}, integers)};
  const Tensor starts = cat({ones({1}, {.dtype = kBool, .device = v.device()}),
                             ne(narrow(v, 0, 1, v.numel() - 1), narrow(v, 0, 0, v.numel() - 1))});
  const Tensor run = sub(cumsum(starts.to(kInt64), 0), 1), values = masked_select(v, starts);
  return {values, run, scatter_add(zeros({values.numel()}, integers), 0, run, ones({v.numel()}, integers))};
}

}  // namespace

Unique unique_consecutive(const Tensor& x) {
  Unique u = runs_of(ravel(x.detach()));
  u.inverse = reshape(u.inverse, x.sizes());
  return u;
}

namespace {

Unique unique_by_sorting(const Tensor& x) {
  const ValuesIndices sorted = sort(x, 0);
  Unique u = runs_of(sorted.values);
  u.inverse = scatter(zeros_like(u.inverse), 0, sorted.indices, u.inverse);
  return u;
}

/// Counts how often each integer in [lowest, lowest + bins) occurs, which takes less time than sorting.
Unique unique_by_counts(const Tensor& x, int64_t lowest, int64_t bins) {
  const TensorOptions integers = {.dtype = kInt64, .device = x.device()};
  const Tensor place = sub(to(x, kInt64), lowest);
  const Tensor counts = scatter_add(zeros({bins}, integers), 0, place, ones(x.sizes(), integers));
  const Tensor present = gt(counts, 0), rank = sub(cumsum(present.to(kInt64), 0), 1);
  const Tensor values = add(masked_select(arange(bins, integers), present), lowest);
  return {to(values, x.dtype()), index_select(rank, 0, place), masked_select(counts, present)};
}

/// Returns the lowest of x's integers and the length of the range that they span, if this is at most their number.
std::optional<std::pair<int64_t, int64_t>> short_range(const Tensor& x) {
  if (x.is_floating() || x.is_complex() || x.dtype() == kBool || x.numel() == 0) return std::nullopt;
  const auto lowest = amin(x).item<int64_t>(), highest = amax(x).item<int64_t>();
  const std::uint64_t last = static_cast<std::uint64_t>(highest) - static_cast<std::uint64_t>(lowest);
  if (last >= static_cast<std::uint64_t>(x.numel())) return std::nullopt;
  return std::pair(lowest, static_cast<int64_t>(last) + 1);
}

}  // namespace

Unique unique(const Tensor& x) {
  const Tensor v = ravel(x.detach());
  const auto range = short_range(v);
  Unique u = range ? unique_by_counts(v, range->first, range->second) : unique_by_sorting(v);
  u.inverse = reshape(u.inverse, x.sizes());
  return u;
}

}  // namespace levin
