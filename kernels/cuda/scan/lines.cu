// Scans that one thread computes along a line, from element to element: cumulative extrema and recurrences.
#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/reduce/ops.cuh"

#include <levin/kernels/scan.h>

namespace levin::kernels::cuda {

namespace {

constexpr int kLineThreads = 128;

template <bool largest, class T>
__global__ void extrema_of_lines(const T* x, T* values, std::int64_t* indices, std::int64_t lines, std::int64_t n,
                                 std::int64_t inner) {
  const std::int64_t line = global_thread();
  if (line >= lines) return;
  std::int64_t at = line / inner * n * inner + line % inner, place = 0;
  T best = x[at];
  for (std::int64_t i = 0; i < n; ++i, at += inner) {
    const T next = x[at];
    if (reduction::follows<largest>(convert<ComputeType<T>>(next), convert<ComputeType<T>>(best))) {
      best = next;
      place = i;
    }
    values[at] = best;
    indices[at] = place;
  }
}

template <bool largest>
void extrema(const char* op, const CumulativeExtremumArgs& a, Stream& stream) {
  const std::int64_t lines = a.outer * a.inner;
  if (lines * a.n == 0) return;
  dispatch_all(a.x.dtype, op, [&]<class T>() {
    using D = DeviceType<T>;
    launch(extrema_of_lines<largest, D>,
           {.grid = static_cast<unsigned>(ceil_div(lines, kLineThreads)), .block = kLineThreads, .stream = stream},
           reinterpret_cast<const D*>(a.x.data<T>()), reinterpret_cast<D*>(a.values.data<T>()),
           a.indices.data<std::int64_t>(), lines, a.n, a.inner);
  });
}

template <class T>
__global__ void recurrence_of_lines(const T* a, const T* b, T* out, std::int64_t lines, std::int64_t n,
                                    std::int64_t inner, bool reverse) {
  const std::int64_t line = global_thread();
  if (line >= lines) return;
  const std::int64_t first = line / inner * n * inner + line % inner, shift = reverse ? inner : 0;
  double last = 0;
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t at = first + (reverse ? n - 1 - step : step) * inner;
    const double start = convert<double>(b[at]);
    last = step == 0 ? start : start + convert<double>(a[at + shift]) * last;
    out[at] = convert<T>(last);
  }
}

}  // namespace

void cummax(const CumulativeExtremumArgs& a, Stream& stream) { extrema<true>("cummax", a, stream); }
void cummin(const CumulativeExtremumArgs& a, Stream& stream) { extrema<false>("cummin", a, stream); }

void recurrence(const RecurrenceArgs& r, Stream& stream) {
  const std::int64_t lines = r.outer * r.inner;
  if (lines * r.n == 0) return;
  dispatch_floating(r.out.dtype, "recurrence", [&]<class T>() {
    using D = DeviceType<T>;
    launch(recurrence_of_lines<D>,
           {.grid = static_cast<unsigned>(ceil_div(lines, kLineThreads)), .block = kLineThreads, .stream = stream},
           reinterpret_cast<const D*>(r.a.data<T>()), reinterpret_cast<const D*>(r.b.data<T>()),
           reinterpret_cast<D*>(r.out.data<T>()), lines, r.n, r.inner, r.reverse);
  });
}

}  // namespace levin::kernels::cuda
