// Operations that process one axis in order: arguments of extrema, cumulative sums, products and extrema, recurrences.
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

/// Lines (outer, n, inner) along n, which are processed from the end if `reverse`.
struct Lines {
  int64_t outer, n, inner;
  bool reverse;
  int64_t place(int64_t step) const { return reverse ? n - 1 - step : step; }
};

/// Calls step(state, element, i) for Together contiguous lines side by side, the first at line `first`: a single line
/// waits for its last result.
template <int Together, class State, class F>
void step_contiguous(const Lines& lines, int64_t first, F&& step) {
  State states[Together] = {};
  for (int64_t s = 0; s < lines.n; ++s) {
    const int64_t i = lines.place(s);
    for (int64_t j = 0; j < Together; ++j) step(states[j], (first + j) * lines.n + i, i);
  }
}

/// Calls step(state, element, i) for every element in the order of its line, where i is its place in the line; each
/// line starts with State().
template <class State, class F>
void step_lines(const Lines& lines, F&& step) {
  if (lines.inner == 1) {
    constexpr int64_t together = 4;
    return parallel_for(0, (lines.outer + together - 1) / together,
                        std::max<int64_t>(1, kScanGrain / std::max<int64_t>(1, together * lines.n)),
                        [&](int64_t begin, int64_t end) {
      int64_t line = begin * together;
      const int64_t last = std::min(end * together, lines.outer);
      for (; line + together <= last; line += together) step_contiguous<together, State>(lines, line, step);
      for (; line < last; ++line) step_contiguous<1, State>(lines, line, step);
    });
  }
  for_tiles(lines.outer, lines.n, lines.inner, [&](int64_t o, int64_t first, int64_t width) {
    State states[kScanTile] = {};
    for (int64_t s = 0; s < lines.n; ++s) {
      const int64_t i = lines.place(s), at = (o * lines.n + i) * lines.inner + first;
      for (int64_t j = 0; j < width; ++j) step(states[j], at + j, i);
    }
  });
}

template <class Op, class T>
void accumulate(const CumulativeArgs& a) {
  using Out = std::conditional_t<std::is_integral_v<T>, int64_t, T>;
  using Acc = reduction::Running<T>;
  struct State {
    Acc total = Op::template neutral<Acc>();
  };
  const T* const x = a.x.data<T>();
  Out* const out = a.out.data<Out>();
  step_lines<State>({a.outer, a.n, a.inner, a.reverse}, [=](State& state, int64_t at, int64_t) {
    state.total = Op::combine(state.total, static_cast<Acc>(x[at]));
    out[at] = static_cast<Out>(state.total);
  });
}

void cumsum(const CumulativeArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "cumsum", [&]<class T>() { accumulate<reduction::Sum, T>(a); });
}
void cumprod(const CumulativeArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "cumprod", [&]<class T>() { accumulate<reduction::Prod, T>(a); });
}

template <bool Largest, class T>
void accumulate_extrema(const CumulativeExtremumArgs& a) {
  struct State {
    T best{};
    int64_t place = 0;
  };
  const T* const x = a.x.data<T>();
  T* const values = a.values.data<T>();
  int64_t* const indices = a.indices.data<int64_t>();
  step_lines<State>({a.outer, a.n, a.inner, false}, [=](State& state, int64_t at, int64_t i) {
    const T next = x[at];
    const bool better = i == 0 || reduction::follows<Largest>(next, state.best);
    values[at] = state.best = better ? next : state.best;
    indices[at] = state.place = better ? i : state.place;
  });
}

void cummax(const CumulativeExtremumArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "cummax", [&]<class T>() { accumulate_extrema<true, T>(a); });
}
void cummin(const CumulativeExtremumArgs& a, Stream&) {
  dispatch_all(a.x.dtype, "cummin", [&]<class T>() { accumulate_extrema<false, T>(a); });
}

template <class T>
void solve_recurrence(const RecurrenceArgs& r) {
  struct State {
    double last = 0;
  };
  const T *const a = r.a.data<T>(), *const b = r.b.data<T>();
  T* const out = r.out.data<T>();
  const int64_t first = r.reverse ? r.n - 1 : 0, shift = r.reverse ? r.inner : 0;
  step_lines<State>({r.outer, r.n, r.inner, r.reverse}, [=](State& state, int64_t at, int64_t i) {
    const auto start = static_cast<double>(b[at]);
    state.last = i == first ? start : start + static_cast<double>(a[at + shift]) * state.last;
    out[at] = static_cast<T>(state.last);
  });
}

void recurrence(const RecurrenceArgs& a, Stream&) {
  dispatch_floating(a.out.dtype, "recurrence", [&]<class T>() { solve_recurrence<T>(a); });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(ArgReduceArgs, argmax, cpu::argmax);
LEVIN_KERNEL(ArgReduceArgs, argmin, cpu::argmin);
LEVIN_KERNEL(CumulativeArgs, cumsum, cpu::cumsum);
LEVIN_KERNEL(CumulativeArgs, cumprod, cpu::cumprod);
LEVIN_KERNEL(CumulativeExtremumArgs, cummax, cpu::cummax);
LEVIN_KERNEL(CumulativeExtremumArgs, cummin, cpu::cummin);
LEVIN_KERNEL(RecurrenceArgs, recurrence, cpu::recurrence);

}  // namespace levin::kernels
