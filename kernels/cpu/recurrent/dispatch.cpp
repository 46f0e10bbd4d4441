// Entry points of the recurrent cells: distribute samples to threads.
#include "kernels/cpu/dispatch.h"
#include "kernels/cpu/recurrent/cells.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/recurrent.h>

#include <algorithm>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kCellGrain = 4096;  // minimum gates of a task

constexpr int64_t gates_of(Cell cell) { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }

bool has_ended(const TensorView& lengths, int64_t sample, int64_t step) {
  return lengths.pointer && lengths.data<int64_t>()[sample] <= step;
}

/// Returns row b of a matrix, null if it is absent.
template <class T>
T* row_of(const TensorView& v, int64_t b) {
  return v.pointer ? v.data<T>() + b * v.stride(0) : nullptr;
}

template <class F>
void for_samples(const TensorView& h, int64_t gates, F&& f) {
  const int64_t n = h.size(1);
  if (n == 0) return;
  parallel_for(0, h.size(0), std::max<int64_t>(1, kCellGrain / (gates * n)), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) f(b, n);
  });
}

template <Cell cell>
void forward(const RecurrentCellArgs& a, Stream&) {
  constexpr int64_t gates = gates_of(cell);
  dispatch_wide(a.x.dtype, "recurrent cell", [&]<class T>() {
    const auto compute = cell_rows(T()).forward[cell];
    for_samples(a.h, gates, [&](int64_t b, int64_t n) {
      const CellRow<T> row{row_of<T>(a.h_next, b), row_of<T>(a.c_next, b), row_of<T>(a.gates, b), row_of<T>(a.x, b),
                           row_of<T>(a.s, b),      row_of<T>(a.h, b),      row_of<T>(a.c, b),     n};
      if (!has_ended(a.lengths, b, a.step)) return compute(row);
      std::copy_n(row.h, n, row.h_next);
      if (row.c) std::copy_n(row.c, n, row.c_next);
    });
  });
}

template <Cell cell>
void backward(const RecurrentCellBackwardArgs& a, Stream&) {
  constexpr int64_t gates = gates_of(cell);
  dispatch_wide(a.dx.dtype, "recurrent cell", [&]<class T>() {
    const auto compute = cell_rows(T()).backward[cell];
    for_samples(a.dh, gates, [&](int64_t b, int64_t n) {
      const CellBackwardRow<T> row{row_of<T>(a.dx, b),     row_of<T>(a.ds, b),     row_of<T>(a.dh, b),
                                   row_of<T>(a.dc, b),     row_of<T>(a.g, b),      row_of<T>(a.gates, b),
                                   row_of<T>(a.h_next, b), row_of<T>(a.c_next, b), row_of<T>(a.h, b),
                                   row_of<T>(a.c, b),      n};
      if (!has_ended(a.lengths, b, a.step)) return compute(row);
      std::fill_n(row.dx, gates * n, T(0));
      if (row.ds) std::fill_n(row.ds, gates * n, T(0));
      for (int64_t j = 0; j < n; ++j) row.dh[j] += row.g[j];
    });
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL_OF(RecurrentCellArgs, rnn_tanh_cell, cpu::forward<cpu::kRnnTanh>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellArgs, rnn_relu_cell, cpu::forward<cpu::kRnnRelu>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellArgs, gru_cell, cpu::forward<cpu::kGru>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellArgs, lstm_cell, cpu::forward<cpu::kLstm>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellBackwardArgs, rnn_tanh_cell_backward, cpu::backward<cpu::kRnnTanh>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellBackwardArgs, rnn_relu_cell_backward, cpu::backward<cpu::kRnnRelu>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellBackwardArgs, gru_cell_backward, cpu::backward<cpu::kGru>, kNot16BitFloats);
LEVIN_KERNEL_OF(RecurrentCellBackwardArgs, lstm_cell_backward, cpu::backward<cpu::kLstm>, kNot16BitFloats);

}  // namespace levin::kernels
