// Entry points of softmax: distribute lines to threads.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/softmax/softmax.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/softmax.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kSoftmaxGrain = 16384;  // minimum elements of a task
constexpr int64_t kRowCost = 32;          // the fixed work of a row, in elements

/// Calls row(offset) for every line along n, or columns(offset, width) for groups of neighbours.
template <class Row, class Columns>
void for_lines(int64_t outer, int64_t n, int64_t inner, Row&& row, Columns&& columns) {
  if (n == 0) return;
  if (inner == 1) {
    parallel_for(0, outer, std::max<int64_t>(1, kSoftmaxGrain / (n + kRowCost)), [&](int64_t b, int64_t e) {
      for (int64_t o = b; o < e; ++o) row(o * n);
    });
    return;
  }
  const int64_t tiles = (inner + kSoftmaxColumns - 1) / kSoftmaxColumns;
  const int64_t work = std::max<int64_t>(1, n * std::min(inner, kSoftmaxColumns));
  parallel_for(0, outer * tiles, std::max<int64_t>(1, kSoftmaxGrain / work), [&](int64_t b, int64_t e) {
    for (int64_t task = b; task < e; ++task) {
      const int64_t first = task % tiles * kSoftmaxColumns;
      columns(task / tiles * n * inner + first, std::min(kSoftmaxColumns, inner - first));
    }
  });
}

template <bool Log>
void forward(const SoftmaxArgs& a, Stream&) {
  dispatch_wide(a.x.dtype, Log ? "log_softmax" : "softmax", [&]<class T>() {
    const SoftmaxLines<T>& lines = softmax_lines(T());
    const auto row = Log ? lines.log_softmax_row : lines.softmax_row;
    const auto columns = Log ? lines.log_softmax_columns : lines.softmax_columns;
    const T* const x = a.x.data<T>();
    T* const out = a.out.data<T>();
    for_lines(a.outer, a.n, a.inner, [&](int64_t at) { row(x + at, out + at, a.n); },
              [&](int64_t at, int64_t width) { columns(x + at, out + at, a.n, a.inner, width); });
  });
}

template <bool Log>
void backward(const SoftmaxBackwardArgs& a, Stream&) {
  dispatch_wide(a.y.dtype, Log ? "log_softmax_backward" : "softmax_backward", [&]<class T>() {
    const SoftmaxLines<T>& lines = softmax_lines(T());
    const auto row = Log ? lines.log_softmax_backward_row : lines.softmax_backward_row;
    const auto columns = Log ? lines.log_softmax_backward_columns : lines.softmax_backward_columns;
    const T *const g = a.g.data<T>(), *const y = a.y.data<T>();
    T* const dx = a.dx.data<T>();
    for_lines(a.outer, a.n, a.inner, [&](int64_t at) { row(g + at, y + at, dx + at, a.n); },
              [&](int64_t at, int64_t width) { columns(g + at, y + at, dx + at, a.n, a.inner, width); });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(SoftmaxArgs, softmax, cpu::forward<false>);
LEVIN_KERNEL(SoftmaxArgs, log_softmax, cpu::forward<true>);
LEVIN_KERNEL(SoftmaxBackwardArgs, softmax_backward, cpu::backward<false>);
LEVIN_KERNEL(SoftmaxBackwardArgs, log_softmax_backward, cpu::backward<true>);

}  // namespace levin::kernels
