// Batch and layer norm: a task consists of some channels or rows, whose data stay in the cache between the passes.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/norm/norm.h"
#include "kernels/cpu/scratch.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/norm.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kNormGrain = 16384;  // minimum elements of a task

template <class T>
T* pointer_or_null(const TensorView& v) {
  return v.pointer ? v.data<T>() : nullptr;
}

/// Returns the biased variance from the sums of differences from an origin and of their squares. A NaN is kept.
double variance_of(double sum, double squares, double count) {
  const double var = (squares - sum * sum / count) / count;
  return var < 0.0 ? 0.0 : var;
}

/// Computes the statistics of channels, and the parameters of their affine functions.
template <class T>
struct BatchStatistics {
  explicit BatchStatistics(const BatchNormArgs& args)
      : a(args),
        weight(pointer_or_null<T>(a.weight)),
        bias(pointer_or_null<T>(a.bias)),
        running_mean(pointer_or_null<T>(a.running_mean)),
        running_var(pointer_or_null<T>(a.running_var)),
        mean(pointer_or_null<T>(a.mean)),
        rstd(pointer_or_null<T>(a.rstd)),
        count(static_cast<double>(a.batch * a.spatial)) {}

  /// Computes the statistics of channel c from sums about the channel's first element, and writes its parameters to
  /// out[i]. A NaN in the variance is kept.
  void from_sums(int64_t c, T first, double sum, double squares, Channels<T>& out, int64_t i) const {
    const double average = static_cast<double>(origin_at(first)) + sum / count;
    const double var = variance_of(sum, squares, count);
    if (running_mean) running_mean[c] = moved(running_mean[c], average);
    if (running_var) running_var[c] = moved(running_var[c], var * count / (count - 1.0));
    finish(c, average, var, out, i);
  }
  void from_running(int64_t c, Channels<T>& out, int64_t i) const {
    finish(c, static_cast<double>(running_mean[c]), static_cast<double>(running_var[c]), out, i);
  }

  const BatchNormArgs& a;

 private:
  /// Returns the updated running statistic. With momentum 1 this is `now`, even if that is far smaller than `running`.
  T moved(T running, double now) const {
    return static_cast<T>((1.0 - a.momentum) * static_cast<double>(running) + a.momentum * now);
  }
  void finish(int64_t c, double average, double var, Channels<T>& out, int64_t i) const {
    const double r = 1.0 / std::sqrt(var + a.eps);
    if (mean) mean[c] = static_cast<T>(average);
    if (rstd) rstd[c] = static_cast<T>(r);
    out.mean[i] = static_cast<T>(average);
    out.scale[i] = static_cast<T>(r * (weight ? static_cast<double>(weight[c]) : 1.0));
    out.shift[i] = bias ? bias[c] : T(0);
  }

  const T *weight, *bias;
  T *running_mean, *running_var, *mean, *rstd;
  double count;
};

/// Calls f(first, n) for groups of channels of a (B, C, S) tensor. A group's elements stay in the second-level cache
/// between two passes, and small planes of several channels make long runs of memory.
template <class T, class Args, class F>
void for_channels(const Args& a, F&& f) {
  constexpr int64_t kInCache = 32768, kMostPlanes = 16;  // limits of a group of several channels
  const int64_t elements = a.batch * a.spatial;  // of a channel
  if (elements == 0) return;
  const auto fitting = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(kInCache / elements)));
  const int64_t most = a.spatial == 1 ? Channels<T>::kMost : std::clamp<int64_t>(fitting, 1, kMostPlanes);
  parallel_for(0, (a.channels + most - 1) / most, std::max<int64_t>(1, kNormGrain / (elements * most)),
               [&](int64_t b, int64_t e) {
    for (int64_t group = b; group < e; ++group) f(group * most, std::min(most, a.channels - group * most));
  });
}

template <class T, class Args>
const ChannelRows<T>& channel_rows(const Args& a) {
  return a.spatial == 1 ? norm_rows(T()).columns : norm_rows(T()).planes;
}

void batch_norm(const BatchNormArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "batch_norm", [&]<class T>() {
    const ChannelRows<T>& rows = channel_rows<T>(a);
    const BatchStatistics<T> statistics(a);
    // In evaluation mode the statistics are written even if there is nothing to normalise.
    if (Channels<T> unused; a.batch * a.spatial == 0 && !a.training)
      for (int64_t c = 0; c < a.channels; ++c) statistics.from_running(c, unused, 0);
    for_channels<T>(a, [&](int64_t first, int64_t n) {
      const T* const x = a.x.data<T>() + first * a.spatial;
      const ChannelPlanes planes{a.batch, a.channels * a.spatial, n, a.spatial};
      Channels<T> channels;
      double sums[2 * Channels<T>::kMost];
      if (a.training) rows.moments(x, planes, sums);
      for (int64_t i = 0; i < n; ++i) {
        if (a.training) statistics.from_sums(first + i, x[i * a.spatial], sums[i], sums[n + i], channels, i);
        else statistics.from_running(first + i, channels, i);
      }
      rows.affine(x, a.y.data<T>() + first * a.spatial, planes, channels);
    });
  });
}

template <class T>
struct BatchGradient {
  explicit BatchGradient(const BatchNormBackwardArgs& args)
      : a(args), weight(pointer_or_null<T>(a.weight)), mean(a.mean.data<T>()), rstd(a.rstd.data<T>()),
        dweight(pointer_or_null<T>(a.dweight)), dbias(pointer_or_null<T>(a.dbias)),
        count(static_cast<double>(a.batch * a.spatial)) {}

  /// Computes the gradients of channel c's weight and bias from the sums of g and of g (x - mean), and writes the
  /// parameters of its dx to out[i].
  void finish(int64_t c, double g_sum, double gx_sum, Channels<T>& out, int64_t i) const {
    const double r = static_cast<double>(rstd[c]);
    if (dweight) dweight[c] = static_cast<T>(gx_sum * r);
    if (dbias) dbias[c] = static_cast<T>(g_sum);
    out.scale[i] = static_cast<T>(r * (weight ? static_cast<double>(weight[c]) : 1.0));
    out.g_mean[i] = static_cast<T>(g_sum / count);
    out.slope[i] = static_cast<T>(gx_sum / count * r * r);
  }

  const BatchNormBackwardArgs& a;
  const T *weight, *mean, *rstd;
  T *dweight, *dbias;
  double count;
};

void batch_norm_backward(const BatchNormBackwardArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "batch_norm_backward", [&]<class T>() {
    const ChannelRows<T>& rows = channel_rows<T>(a);
    const BatchGradient<T> gradient(a);
    for_channels<T>(a, [&](int64_t first, int64_t n) {
      const int64_t at = first * a.spatial;
      const T *const x = a.x.data<T>() + at, *const g = a.g.data<T>() + at;
      const ChannelPlanes planes{a.batch, a.channels * a.spatial, n, a.spatial};
      Channels<T> channels;
      double sums[2 * Channels<T>::kMost];
      std::copy(gradient.mean + first, gradient.mean + first + n, channels.mean);
      rows.gradient_sums(g, x, planes, channels, sums);
      for (int64_t i = 0; i < n; ++i) gradient.finish(first + i, sums[i], sums[n + i], channels, i);
      if (T* const dx = pointer_or_null<T>(a.dx)) rows.input_gradient(g, x, dx + at, planes, channels);
    });
  });
}

void layer_norm(const LayerNormArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "layer_norm", [&]<class T>() {
    const NormRows<T>& rows = norm_rows(T());
    const T *const x = a.x.data<T>(), *const weight = pointer_or_null<T>(a.weight),
                   *const bias = pointer_or_null<T>(a.bias);
    T *const y = a.y.data<T>(), *const mean = pointer_or_null<T>(a.mean), *const rstd = pointer_or_null<T>(a.rstd);
    const int64_t n = a.columns;
    if (n == 0) return;
    parallel_for(0, a.rows, std::max<int64_t>(1, kNormGrain / n), [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r)
        rows.layer(x + r * n, weight, bias, y + r * n, n, a.eps, mean ? mean + r : nullptr, rstd ? rstd + r : nullptr);
    });
  });
}

/// Computes out[j] = sum over chunks of partial[chunk * step + j], in the order of the chunks.
template <class T>
void add_chunks(const T* partial, int64_t chunks, int64_t step, T* out, int64_t n) {
  constexpr int64_t kTile = 256;
  parallel_for(0, (n + kTile - 1) / kTile, std::max<int64_t>(1, kNormGrain / (kTile * std::max<int64_t>(1, chunks))),
               [&](int64_t b, int64_t e) {
    for (int64_t tile = b; tile < e; ++tile) {
      const int64_t first = tile * kTile, width = std::min(kTile, n - first);
      double sum[kTile] = {};
      for (int64_t k = 0; k < chunks; ++k)
        for (int64_t j = 0; j < width; ++j) sum[j] += static_cast<double>(partial[k * step + first + j]);
      for (int64_t j = 0; j < width; ++j) out[first + j] = static_cast<T>(sum[j]);
    }
  });
}

/// Calls row(r, dw, db) for each row; dw and db, which sum over rows, are null if neither dweight nor dbias is wanted.
template <class T, class F>
void for_rows_with_sums(int64_t rows, int64_t n, T* dweight, T* dbias, F&& row) {
  const int64_t most = 64;  // chunks, so that partial sums stay small
  const int64_t each = std::max({int64_t{1}, 4 * kNormGrain / n, (rows + most - 1) / most}),
                chunks = (rows + each - 1) / each;
  T* const partial = dweight || dbias ? scratch<T>(Slot::norm, 2 * n * std::max<int64_t>(1, chunks)) : nullptr;
  parallel_for(0, rows, each, [&](int64_t b, int64_t e) {  // partial is (chunks, 2, n)
    T *dw = nullptr, *db = nullptr;
    if (partial) {
      dw = partial + b / each * 2 * n;
      db = dw + n;
      std::fill(dw, dw + 2 * n, T(0));
    }
    for (int64_t r = b; r < e; ++r) row(r, dw, db);
  });
  if (dweight) add_chunks(partial, chunks, 2 * n, dweight, n);
  if (dbias) add_chunks(partial + n, chunks, 2 * n, dbias, n);
}

void layer_norm_backward(const LayerNormBackwardArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "layer_norm_backward", [&]<class T>() {
    const T *const x = a.x.data<T>(), *const g = a.g.data<T>(), *const weight = pointer_or_null<T>(a.weight);
    const T *const mean = a.mean.data<T>(), *const rstd = a.rstd.data<T>();
    T* const dx = pointer_or_null<T>(a.dx);
    const int64_t n = a.columns;
    if (n == 0) return;
    for_rows_with_sums(a.rows, n, pointer_or_null<T>(a.dweight), pointer_or_null<T>(a.dbias),
                       [&](int64_t r, T* dw, T* db) {
      norm_rows(T()).layer_backward(g + r * n, x + r * n, weight, mean[r], rstd[r], dx ? dx + r * n : nullptr, dw, db,
                                    n);
    });
  });
}

void rms_norm(const RmsNormArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "rms_norm", [&]<class T>() {
    const T *const x = a.x.data<T>(), *const weight = pointer_or_null<T>(a.weight);
    T *const y = a.y.data<T>(), *const rstd = pointer_or_null<T>(a.rstd);
    const int64_t n = a.columns;
    if (n == 0) return;
    parallel_for(0, a.rows, std::max<int64_t>(1, kNormGrain / n), [&](int64_t b, int64_t e) {
      for (int64_t r = b; r < e; ++r)
        norm_rows(T()).rms(x + r * n, weight, y + r * n, n, a.eps, rstd ? rstd + r : nullptr);
    });
  });
}

void rms_norm_backward(const RmsNormBackwardArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "rms_norm_backward", [&]<class T>() {
    const T *const x = a.x.data<T>(), *const g = a.g.data<T>(), *const weight = pointer_or_null<T>(a.weight);
    const T* const rstd = a.rstd.data<T>();
    T* const dx = pointer_or_null<T>(a.dx);
    const int64_t n = a.columns;
    if (n == 0) return;
    for_rows_with_sums<T>(a.rows, n, pointer_or_null<T>(a.dweight), nullptr, [&](int64_t r, T* dw, T*) {
      norm_rows(T()).rms_backward(g + r * n, x + r * n, weight, T(0), rstd[r], dx ? dx + r * n : nullptr, dw, nullptr,
                                  n);
    });
  });
}

/// Calls f(sample * groups + group) for all groups of all samples.
template <class Args, class F>
void for_groups(const Args& a, F&& f) {
  const int64_t n = a.channels * a.spatial;
  if (n == 0) return;
  parallel_for(0, a.batch * a.groups, std::max<int64_t>(1, kNormGrain / n), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) f(r);
  });
}

/// Calls f(first, n) for the channels of a group, as many at a time as Channels can hold.
template <class T, class F>
void for_parts(int64_t channels, F&& f) {
  constexpr int64_t most = Channels<T>::kMost;
  for (int64_t first = 0; first < channels; first += most) f(first, std::min(most, channels - first));
}

void group_norm(const GroupNormArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "group_norm", [&]<class T>() {
    const ChannelRows<T>& rows = norm_rows(T()).planes;
    const T *const weight = pointer_or_null<T>(a.weight), *const bias = pointer_or_null<T>(a.bias);
    T *const mean_out = pointer_or_null<T>(a.mean), *const rstd_out = pointer_or_null<T>(a.rstd);
    const int64_t n = a.channels * a.spatial;
    for_groups(a, [&](int64_t r) {
      const T* const x = a.x.data<T>() + r * n;
      const double count = static_cast<double>(n);
      double sums[2];
      rows.moments(x, {1, 0, 1, n}, sums);
      const double rstd = 1.0 / std::sqrt(variance_of(sums[0], sums[1], count) + a.eps);
      const T mean = static_cast<T>(static_cast<double>(origin_at(x[0])) + sums[0] / count);
      if (mean_out) mean_out[r] = mean;
      if (rstd_out) rstd_out[r] = static_cast<T>(rstd);
      for_parts<T>(a.channels, [&](int64_t first, int64_t channels) {
        Channels<T> c;
        for (int64_t i = 0; i < channels; ++i) {
          const int64_t at = r % a.groups * a.channels + first + i;
          c.mean[i] = mean;
          c.scale[i] = static_cast<T>(weight ? rstd * static_cast<double>(weight[at]) : rstd);
          c.shift[i] = bias ? bias[at] : T(0);
        }
        rows.affine(x + first * a.spatial, a.y.data<T>() + r * n + first * a.spatial, {1, 0, channels, a.spatial}, c);
      });
    });
  });
}

/// dx is linear in g and x: a factor of g per channel, and a factor of x and a number per group (Wu & He 2018).
void group_norm_backward(const GroupNormBackwardArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, "group_norm_backward", [&]<class T>() {
    const NormRows<T>& rows = norm_rows(T());
    const T* const weight = pointer_or_null<T>(a.weight);
    T* const dx = pointer_or_null<T>(a.dx);
    const int64_t n = a.channels * a.spatial;
    for_groups(a, [&](int64_t r) {
      const T *const x = a.x.data<T>() + r * n, *const g = a.g.data<T>() + r * n;
      const T* const w = weight ? weight + r % a.groups * a.channels : nullptr;
      const T mean = a.mean.data<T>()[r];
      const double rstd = static_cast<double>(a.rstd.data<T>()[r]), count = static_cast<double>(n);
      double g_mean = 0.0, gxh_mean = 0.0;  // of g weight
      for_parts<T>(a.channels, [&](int64_t first, int64_t channels) {
        Channels<T> part;
        std::fill(part.mean, part.mean + channels, mean);
        double sums[2 * Channels<T>::kMost];
        const int64_t at = first * a.spatial;
        rows.planes.gradient_sums(g + at, x + at, {1, 0, channels, a.spatial}, part, sums);
        for (int64_t i = 0, c = first; i < channels; ++i, ++c) {
          a.dbias.data<T>()[r * a.channels + c] = static_cast<T>(sums[i]);
          a.dweight.data<T>()[r * a.channels + c] = static_cast<T>(sums[channels + i] * rstd);
          const double factor = (w ? static_cast<double>(w[c]) : 1.0) / count;
          g_mean += factor * sums[i];
          gxh_mean += factor * sums[channels + i] * rstd;
        }
      });
      if (!dx) return;
      const double slope = -rstd * rstd * gxh_mean, shift = -rstd * g_mean - slope * static_cast<double>(mean);
      for (int64_t c = 0; c < a.channels; ++c) {
        const int64_t at = c * a.spatial;
        rows.combined(g + at, x + at, dx + r * n + at, a.spatial,
                      static_cast<T>(w ? rstd * static_cast<double>(w[c]) : rstd), static_cast<T>(slope),
                      static_cast<T>(shift));
      }
    });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL_OF(BatchNormArgs, batch_norm, cpu::batch_norm, kNot16BitFloats);
LEVIN_KERNEL_OF(BatchNormBackwardArgs, batch_norm_backward, cpu::batch_norm_backward, kNot16BitFloats);
LEVIN_KERNEL_OF(LayerNormArgs, layer_norm, cpu::layer_norm, kNot16BitFloats);
LEVIN_KERNEL_OF(LayerNormBackwardArgs, layer_norm_backward, cpu::layer_norm_backward, kNot16BitFloats);
LEVIN_HOST_ONLY(GroupNormArgs, group_norm, cpu::group_norm, "on CUDA it is layer norm and a multiply-add");
LEVIN_HOST_ONLY(GroupNormBackwardArgs, group_norm_backward, cpu::group_norm_backward,
                "on CUDA it is composed of the sums of batch norm and two multiply-adds");
LEVIN_HOST_ONLY(RmsNormArgs, rms_norm, cpu::rms_norm, "on CUDA it is composed");
LEVIN_HOST_ONLY(RmsNormBackwardArgs, rms_norm_backward, cpu::rms_norm_backward, "on CUDA it is composed");

}  // namespace levin::kernels
