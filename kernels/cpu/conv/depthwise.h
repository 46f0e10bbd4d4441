#pragma once
// Depthwise convolution: each group has one input channel and few output channels.
// Idea: lanes are neighbouring pixels of a row instead of channels, of which there are too few. The zero-padded copy
// and the phases of direct.h remove padding and strides, so every tap is a shifted row. Changes compared with
// columns.h: no column matrix, and no product with a single row. Bound: loads, one for each multiply-add; the copy of
// the padded plane for small kernels.

#include "kernels/cpu/conv/direct.h"

namespace levin::kernels::cpu::detail {

constexpr int64_t kDepthwiseGrain = 1 << 16;  // minimum products of a task

inline bool is_depthwise(const Conv2dShape& s) { return s.groups > 1 && s.group_in() == 1; }

/// Computes one plane of the result, phase by phase.
template <class T>
void depthwise_plane(const DirectPlan& plan, const TapTable& table, const T* padded, const T* w, T bias, T* result) {
  for (const PhaseTaps& phase : table.phases) {
    const AxisPhase &rows = plan.rows.results[phase.row], &columns = plan.columns.results[phase.column];
    const int64_t taps = static_cast<int64_t>(rows.taps.size()) * phase.per_row;
    T* const weights = scratch<T>(Slot::conv_weights, taps);
    for (int64_t t = 0; t < taps; ++t) weights[t] = w[table.weights[static_cast<std::size_t>(phase.first + t)]];
    T* const first = result + rows.first * plan.result_w + columns.first;
    const int64_t row_step = rows.step * plan.result_w;
    const bool in_place = columns.step == 1;
    T* const pixels = in_place ? first : scratch<T>(Slot::conv_pixels, rows.count * columns.count);
    conv_ops<T>().plane({padded + rows.source * plan.columns.extent + columns.source,
                         table.offsets.data() + phase.first, weights, taps, rows.count, columns.count,
                         plan.columns.extent, bias, pixels, in_place ? row_step : columns.count});
    if (in_place) continue;
    for (int64_t r = 0; r < rows.count; ++r)
      for (int64_t c = 0; c < columns.count; ++c)
        first[r * row_step + c * columns.step] = pixels[r * columns.count + c];
  }
}

/// Computes result = source * w (+ bias), where either the sources or the results of a group are a single plane.
template <class T>
void depthwise_run(const DirectPlan& plan, const Conv2dShape& s, const T* source, const T* w, const T* bias,
                   T* result) {
  const TapTable table(plan, TapTable::Order::by_row);
  const int64_t work = std::max<int64_t>(1, plan.result_channels * plan.result_plane() * plan.taps());
  parallel_for(0, s.batch * s.groups, std::max<int64_t>(1, kDepthwiseGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const T* padded = padded_source(plan, source + item * plan.source_channels * plan.source_plane());
      const int64_t group = item % s.groups;
      for (int64_t c = 0; c < plan.result_channels; ++c) {
        depthwise_plane(plan, table, padded, w + (group * s.group_out() + c) * plan.kernel(),
                        bias ? bias[group * plan.result_channels + c] : T(0),
                        result + (item * plan.result_channels + c) * plan.result_plane());
      }
    }
  });
}

/// A task has all images of a few groups, so each sum has one order.
template <class T>
void depthwise_backward_weight(const Conv2dShape& s, const T* x, const T* dy, T* dw) {
  const ConvOps<T>& ops = conv_ops<T>();
  const DirectPlan plan = forward_plan(s);
  const TapTable table(plan, TapTable::Order::natural);
  const int64_t taps = plan.taps(), work = std::max<int64_t>(1, s.batch * s.group_out() * s.out_plane() * taps);
  parallel_for(0, s.groups, std::max<int64_t>(1, kDepthwiseGrain / work), [&](int64_t begin, int64_t end) {
    T* const sum = scratch<T>(Slot::conv_sums, taps);
    std::fill(dw + begin * s.group_out() * taps, dw + end * s.group_out() * taps, T(0));
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t image = 0; image < s.batch; ++image) {
        const T* padded = padded_source(plan, x + (image * s.groups + group) * s.in_plane());
        for (int64_t c = group * s.group_out(); c < (group + 1) * s.group_out(); ++c) {
          ops.plane_weights({padded, table.offsets.data(), taps, s.out_h, s.out_w, plan.columns.extent,
                             dy + (image * s.out_channels + c) * s.out_plane(), sum});
          ops.add(dw + c * taps, sum, taps);
        }
      }
    }
  });
}

}  // namespace levin::kernels::cpu::detail
