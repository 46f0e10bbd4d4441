// Operations that process one axis in order: arguments of extrema, cumulative sums.
#include "kernels/cpu/reduce/reduce.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/scan.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kScanGrain = 32768;  // minimum elements of a task
constexpr int64_t kScanTile = 64;      // neighbours along the inner axis that are processed together

/// Calls f(outer index, first inner index, width) for tiles of the inner axis, in parallel.
template <class F>
void for_tiles(int64_t outer, int64_t n, int64_t inner, F&& f) {
  const int64_t tiles = (inner + kScanTile - 1) / kScanTile;
  const int64_t work = std::max<int64_t>(1, n * std::min(inner, kScanTile));
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kScanGrain / work), [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      const int64_t first = task % tiles * kScanTile;
      f(task / tiles, first, std::min(kScanTile, inner - first));
    }
  });
}

constexpr int64_t kLongLine = 64;  // from this length on, two passes, both SIMD, are faster

/// Returns the position of the extremum of a contiguous line.
template <bool Largest, class T>
int64_t place_in_line(const T* x, int64_t n) {
  const FloatReducers& reducers = float_reducers(T());
  const Reducer<double>& reducer = Largest ? reducers.max : reducers.min;
  double wide = reducer.neutral;
  reducer.rows({x, 1, 0, n, 1, 0.0}, &wide);
  const T extremum = static_cast<T>(wide);
  const bool nan = reduction::is_nan(extremum);
  constexpr int64_t kGroup = 32;  // elements compared without a branch
  int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    int found = 0;
    for (int64_t j = 0; j < kGroup; ++j) found |= nan ? x[i + j] != x[i + j] : x[i + j] == extremum;
    if (found) break;
  }
  while (nan ? x[i] == x[i] : x[i] != extremum) ++i;
  return i;
}

template <bool Largest, class T>
void arg_reduce(const ArgReduceArgs& a) {
  for_tiles(a.outer, a.n, a.inner, [&](int64_t o, int64_t first, int64_t width) {
    const T* x = a.x.data<T>() + o * a.n * a.inner + first;
    int64_t* const index = a.indices.data<int64_t>() + o * a.inner + first;
    T* const value = a.values.pointer ? a.values.data<T>() + o * a.inner + first : nullptr;
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (a.inner == 1 && a.n >= kLongLine) {
        *index = place_in_line<Largest>(x, a.n);
        if (value) *value = x[*index];
        return;
      }
    }
    T best[kScanTile];
    for (int64_t j = 0; j < width; ++j) best[j] = x[j], index[j] = 0;
    for (int64_t i = 1; i < a.n; ++i) {
      x += a.inner;
      for (int64_t j = 0; j < width; ++j)
        if (reduction::beats<Largest>(x[j], best[j])) best[j] = x[j], index[j] = i;
    }
    if (value) std::copy(best, best + width, value);
  });
}

void argmax(const ArgReduceArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "argmax", [&]<class T>() { arg_reduce<true, T>(a); });
}
void argmin(const ArgReduceArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "argmin", [&]<class T>() { arg_reduce<false, T>(a); });
}

/// Accumulates Lines contiguous lines of n elements side by side: a single running sum waits for its last addition.
template <int Lines, class T, class Out>
void accumulate_lines(const T* x, Out* out, int64_t n, bool reverse) {
  using Acc = reduction::RunningSum<T>;
  Acc sum[Lines] = {};
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = reverse ? n - 1 - step : step;
    for (int64_t j = 0; j < Lines; ++j)
      out[j * n + i] = static_cast<Out>(sum[j] += static_cast<Acc>(x[j * n + i]));
  }
}

template <class T>
void accumulate(const CumsumArgs& a) {
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  using Acc = reduction::RunningSum<T>;
  if (a.inner == 1) {
    constexpr int64_t together = 4;
    const T* const x = a.x.data<T>();
    Out* const out = a.out.data<Out>();
    return parallel_for(0, (a.outer + together - 1) / together,
                        std::max<int64_t>(1, kScanGrain / std::max<int64_t>(1, together * a.n)),
                        [&](int64_t begin, int64_t end) {
      int64_t line = begin * together;
      const int64_t last = std::min(end * together, a.outer);
      for (; line + together <= last; line += together)
        accumulate_lines<together>(x + line * a.n, out + line * a.n, a.n, a.reverse);
      for (; line < last; ++line) accumulate_lines<1>(x + line * a.n, out + line * a.n, a.n, a.reverse);
    });
  }
  for_tiles(a.outer, a.n, a.inner, [&](int64_t o, int64_t first, int64_t width) {
    Acc sum[kScanTile] = {};
    for (int64_t step = 0; step < a.n; ++step) {
      const int64_t i = a.reverse ? a.n - 1 - step : step, at = (o * a.n + i) * a.inner + first;
      const T* const x = a.x.data<T>() + at;
      Out* const out = a.out.data<Out>() + at;
      for (int64_t j = 0; j < width; ++j) out[j] = static_cast<Out>(sum[j] += static_cast<Acc>(x[j]));
    }
  });
}

void cumsum(const CumsumArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "cumsum", [&]<class T>() { accumulate<T>(a); });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(ArgReduceArgs, argmax, cpu::argmax);
LEVIN_KERNEL(ArgReduceArgs, argmin, cpu::argmin);
LEVIN_KERNEL(CumsumArgs, cumsum, cpu::cumsum);

}  // namespace levin::kernels
