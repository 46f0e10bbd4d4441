#pragma once
// The geometry of the direct convolution: the inputs that each result pixel reads, computed once for a shape.

#include "kernels/cpu/conv/conv.h"
#include "kernels/cpu/conv/ops.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace levin::kernels::cpu::detail {

/// One direction (rows or columns) of a strided, padded, dilated window.
struct Axis {
  int64_t in, out, kernel, stride, pad, dilation;
};
inline Axis row_axis(const Conv2dShape& s) { return {s.in_h, s.out_h, s.kernel_h, s.stride_h, s.pad_h, s.dilation_h}; }
inline Axis column_axis(const Conv2dShape& s) {
  return {s.in_w, s.out_w, s.kernel_w, s.stride_w, s.pad_w, s.dilation_w};
}

/// A kernel position of one phase and its offset from the pixel in the padded source.
struct AxisTap {
  int64_t kernel, phase, shift;
};

/// Pixels first, first + step, ... of the result and the taps that they read.
struct AxisPhase {
  int64_t first, step, count;  // pixels of the result
  int64_t source;              // padded source position of the first pixel
  std::vector<AxisTap> taps;   // in order of rising or falling source position
};

/// The plan of one direction: the padded source holds, for each of `phases` phases p and each i < extent, the source's
/// element i * phases + p + origin (zero outside).
struct AxisPlan {
  int64_t size, phases, extent, origin;
  std::vector<AxisPhase> results;

  bool whole() const { return phases == 1 && origin == 0 && extent == size; }
  int64_t element(int64_t position, const AxisTap& tap) const {
    return (position + tap.shift) * phases + tap.phase + origin;
  }
  bool inside(int64_t position, const AxisTap& tap) const {
    const int64_t e = element(position, tap);
    return e >= 0 && e < size;
  }
};

/// Plans y[o] = sum over k of x[o * stride + k * dilation - pad] w[k]: the stride becomes phases of the source.
inline AxisPlan forward_axis(const Axis& a) {
  AxisPlan plan{a.in, a.stride, a.out + (a.kernel - 1) * a.dilation / a.stride, -a.pad, {}};
  AxisPhase all{0, 1, a.out, 0, {}};
  for (int64_t k = 0; k < a.kernel; ++k) all.taps.push_back({k, k * a.dilation % a.stride, k * a.dilation / a.stride});
  plan.results.push_back(std::move(all));
  return plan;
}

/// Plans dx[i] = sum over k of dy[(i + pad - k * dilation) / stride] w[k] where the division is exact: the stride
/// becomes phases of the result, i + pad = stride * t + r, each with the kernel positions whose k * dilation leaves the
/// same remainder r.
inline AxisPlan backward_axis(const Axis& a) {
  const int64_t reach = (a.kernel - 1) * a.dilation / a.stride;
  const int64_t t_first = a.pad / a.stride, t_last = (a.in - 1 + a.pad) / a.stride;
  AxisPlan plan{a.out, 1, t_last - t_first + reach + 1, t_first - reach, {}};
  for (int64_t r = 0; r < a.stride; ++r) {
    const int64_t t = (std::max<int64_t>(a.pad - r, 0) + a.stride - 1) / a.stride;
    const int64_t first = t * a.stride + r - a.pad;
    if (first >= a.in) continue;
    AxisPhase phase{first, a.stride, (a.in - 1 - first) / a.stride + 1, t - plan.origin, {}};
    for (int64_t k = 0; k < a.kernel; ++k) {
      if (k * a.dilation % a.stride == r) phase.taps.push_back({k, 0, -((k * a.dilation - r) / a.stride)});
    }
    plan.results.push_back(std::move(phase));
  }
  return plan;
}

/// Copies one channel's plane into its padded phases: (row phase, column phase, row, column).
template <class T>
void pad_plane(const T* plane, const AxisPlan& rows, const AxisPlan& columns, T* out) {
  const int64_t step = rows.phases;
  for (int64_t phase = 0; phase < step; ++phase, out += columns.phases * rows.extent * columns.extent) {
    const int64_t start = phase + rows.origin;  // the source's row in line 0
    const int64_t first = std::min(start < 0 ? (-start + step - 1) / step : 0, rows.extent);
    const int64_t last = std::clamp(start < rows.size ? (rows.size - 1 - start) / step + 1 : 0, first, rows.extent);
    conv_ops<T>().pad({plane + (start + first * step) * columns.size, columns.phases, step * columns.size, columns.size,
                       columns.origin, columns.extent, first, last, rows.extent, out});
  }
}

/// Both directions of one convolution, with their numbers of channels.
struct DirectPlan {
  AxisPlan rows, columns;
  int64_t source_channels, result_channels;  // of one group
  int64_t result_h, result_w;
  int64_t kernel_h, kernel_w;

  int64_t source_plane() const { return rows.size * columns.size; }
  int64_t result_plane() const { return result_h * result_w; }
  bool in_place() const { return rows.whole() && columns.whole(); }  // only padding needs a copy

  int64_t padded_plane() const { return rows.phases * columns.phases * rows.extent * columns.extent; }
  int64_t kernel() const { return kernel_h * kernel_w; }
  int64_t taps() const { return source_channels * kernel(); }
  int64_t offset(int64_t channel, const AxisTap& row, const AxisTap& column) const {
    const int64_t phase = row.phase * columns.phases + column.phase;
    return channel * padded_plane() + (phase * rows.extent + row.shift) * columns.extent + column.shift;
  }
};

/// Flattens the planes of a 1 x 1 kernel without stride and padding into one long row. A transposed convolution may
/// have pixels beyond its kernel's reach (output_padding with a dilation), and then the two planes differ.
inline Conv2dShape flattened(Conv2dShape s) {
  const bool same = s.in_h == s.out_h && s.in_w == s.out_w;
  if (same && s.kernel() == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_h == 0 && s.pad_w == 0) {
    s.in_w = s.out_w = s.in_plane();
    s.in_h = s.out_h = 1;
  }
  return s;
}

inline DirectPlan forward_plan(const Conv2dShape& s) {
  return {forward_axis(row_axis(s)),
          forward_axis(column_axis(s)),
          s.group_in(),
          s.group_out(),
          s.out_h,
          s.out_w,
          s.kernel_h,
          s.kernel_w};
}
inline DirectPlan backward_plan(const Conv2dShape& s) {
  return {backward_axis(row_axis(s)),
          backward_axis(column_axis(s)),
          s.group_out(),
          s.group_in(),
          s.in_h,
          s.in_w,
          s.kernel_h,
          s.kernel_w};
}

/// Some rows of the padded source as a plan of their own, whose results are rows of the whole result.
struct DirectStrip {
  DirectPlan plan;
  int64_t first_row = 0;  // of the result
};

/// The division of an image into strips of rows: a strip's padded source stays in the second-level cache, and several
/// threads can work on one image. It depends on shapes alone, because the weight's gradient is summed strip by strip.
class DirectStrips {
 public:
  DirectStrips(const DirectPlan& plan, int64_t batch, int64_t element_size) {
    int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;  // positions of the padded source with results
    for (const AxisPhase& phase : plan.rows.results) {
      begin = std::min(begin, phase.source), end = std::max(end, phase.source + phase.count);
      for (const AxisTap& tap : phase.taps) back_ = std::min(back_, tap.shift), ahead_ = std::max(ahead_, tap.shift);
    }
    const int64_t count = number_of_strips(plan, batch, std::max<int64_t>(1, end - begin), element_size);
    if (count == 1) {
      list_.push_back({plan});
      return;
    }
    const int64_t rows = (end - begin + count - 1) / count;
    for (int64_t at = begin; at < end; at += rows) list_.push_back(strip(plan, at, rows));
  }

  int64_t count() const { return static_cast<int64_t>(list_.size()); }
  const DirectStrip& operator[](int64_t i) const { return list_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<DirectStrip> list_;
  int64_t back_ = 0, ahead_ = 0;  // how far the taps reach

  /// Returns how many strips fit the cache and give every thread work. Each has enough work to pay for its padding.
  int64_t number_of_strips(const DirectPlan& plan, int64_t batch, int64_t positions, int64_t element_size) const {
    constexpr int64_t most_bytes = 384 << 10, least_products = 1 << 21, least_units = 8;
    const int64_t reach = ahead_ - back_;
    const int64_t bytes =
        std::max<int64_t>(1, plan.source_channels * plan.padded_plane() / plan.rows.extent * element_size);
    const int64_t products = plan.result_channels * plan.result_plane() * plan.taps() / positions;
    const int64_t least = std::max({int64_t{2}, 4 * reach, least_products / std::max<int64_t>(1, products)});
    const int64_t fitting = plan.in_place() ? positions : most_bytes / bytes - reach;
    const int64_t shared = batch * positions / least_units;
    return std::max<int64_t>(1, positions / std::max(least, std::min(fitting, shared)));
  }

  /// Plans the results at positions [begin, begin + size); all strips of one size have the same offsets of taps.
  DirectStrip strip(const DirectPlan& plan, int64_t begin, int64_t size) const {
    DirectStrip result{plan, std::numeric_limits<int64_t>::max()};
    AxisPlan& rows = result.plan.rows;
    const int64_t from = plan.in_place() ? 0 : begin + back_;
    if (!plan.in_place()) rows.extent = size + ahead_ - back_, rows.origin += from * rows.phases;
    int64_t last = 0;
    for (AxisPhase& phase : rows.results) {
      const int64_t start = std::clamp<int64_t>(begin - phase.source, 0, phase.count);
      phase.count = std::clamp<int64_t>(begin + size - phase.source, start, phase.count) - start;
      phase.first += start * phase.step;
      phase.source += start - from;
      if (phase.count == 0) continue;
      result.first_row = std::min(result.first_row, phase.first);
      last = std::max(last, phase.first + (phase.count - 1) * phase.step + 1);
    }
    for (AxisPhase& phase : rows.results) phase.first -= result.first_row;
    result.plan.result_h = last - result.first_row;
    return result;
  }
};

/// Result channels are computed in panels of two vectors; the last panel may have one.
template <class T>
struct Panels {
  int64_t lanes = conv_ops<T>().lanes, channels;
  explicit Panels(int64_t channels_) : channels(channels_) {}
  int64_t count() const { return (channels + 2 * lanes - 1) / (2 * lanes); }
  int64_t first(int64_t panel) const { return panel * 2 * lanes; }
  int64_t used(int64_t panel) const { return std::min(channels - first(panel), 2 * lanes); }
  int64_t vectors(int64_t panel) const { return used(panel) > lanes ? 2 : 1; }
  int64_t width(int64_t panel) const { return vectors(panel) * lanes; }
};

/// One pair of phases: the order of its taps, row by row of the kernel, so that rows over the padding can be skipped.
struct PhaseTaps {
  std::size_t row, column;  // numbers of the phases
  int64_t first;            // in the tables of offsets and weights
  int64_t per_row;          // taps of one kernel row: source channels times kernel columns
};

/// Offsets of all phases' taps in one table: kernel row by kernel row, or (for a plan with one phase) in the order of
/// the weights.
struct TapTable {
  enum class Order { by_row, natural };
  std::vector<int64_t> offsets;
  std::vector<int64_t> weights;  // (taps): source channel * kernel + kernel position
  std::vector<PhaseTaps> phases;

  TapTable(const DirectPlan& plan, Order order) {
    for (std::size_t r = 0; r < plan.rows.results.size(); ++r) {
      for (std::size_t c = 0; c < plan.columns.results.size(); ++c) {
        const AxisPhase &rows = plan.rows.results[r], &columns = plan.columns.results[c];
        const auto first = static_cast<int64_t>(offsets.size());
        phases.push_back({r, c, first, plan.source_channels * static_cast<int64_t>(columns.taps.size())});
        if (order == Order::by_row) {
          for (const AxisTap& row : rows.taps) {
            for (int64_t channel = 0; channel < plan.source_channels; ++channel) add(plan, channel, row, columns);
          }
        } else {
          for (int64_t channel = 0; channel < plan.source_channels; ++channel) {
            for (const AxisTap& row : rows.taps) add(plan, channel, row, columns);
          }
        }
      }
    }
  }

 private:
  void add(const DirectPlan& plan, int64_t channel, const AxisTap& row, const AxisPhase& columns) {
    for (const AxisTap& column : columns.taps) {
      offsets.push_back(plan.offset(channel, row, column));
      weights.push_back(channel * plan.kernel() + row.kernel * plan.kernel_w + column.kernel);
    }
  }
};

}  // namespace levin::kernels::cpu::detail
