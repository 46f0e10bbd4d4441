#pragma once
// Contracts of the cells of recurrent layers: one step of a batch.

#include <levin/kernels/kernel.h>

namespace levin::kernels {

/// Computes the next states of B samples with H values each from x = W_ih x + b_ih and s = W_hh h + b_hh, which hold G
/// gates side by side:
///
///   rnn_tanh_cell  G = 1  h' = tanh(x + s)
///   rnn_relu_cell  G = 1  h' = max(x + s, 0)
///   gru_cell       G = 3  r, z = sigmoid(x_r + s_r), sigmoid(x_z + s_z);  n = tanh(x_n + r s_n);  h' = n + z (h - n)
///   lstm_cell      G = 4  i, f, o = sigmoid, g = tanh of x + s;  c' = f c + i g;  h' = o tanh(c')
///
/// x and s are (B, G H); h, h' = h_next, c and c' = c_next (of lstm_cell only) are (B, H), and h' may be h, c' may be
/// c. gates (B, 4 H) receives i, f, g, o or r, z, n, s_n for the backward; it may be absent (null pointer), as it is
/// for the other two cells. If lengths (B, int64) is present, a sample with lengths[b] <= step has ended: it keeps h
/// and c, and its gates are not written. All tensors are contiguous and of one floating type, f32 or f64 on the CPU.
/// Bytes: every tensor once; about 25 flops per gate.
struct RecurrentCellArgs {
  TensorView h_next, c_next, gates, x, s, h, c, lengths;
  int64_t step = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(h_next, c_next, gates, x, s, h, c), 25 * count(x), x.dtype};
  }
};
extern constinit Kernel<void(const RecurrentCellArgs&, Stream&)> rnn_tanh_cell, rnn_relu_cell, gru_cell, lstm_cell;

/// Gradients of a cell. The gradient of h' is g + dh, two tensors (B, H); that of c' is dc. Writes the gradients of x
/// to dx and of s to ds (B, G H); ds is absent for all but gru_cell, where both are the same. dh receives the part of
/// h's gradient that does not pass through s: z times that of h' for gru_cell, all of it for a sample that has ended,
/// else 0. dc receives the gradient of c. h_next and c_next are the results of the step, h and c the states before it;
/// rnn_tanh_cell and rnn_relu_cell read h_next, gru_cell h, lstm_cell c and c_next. gates, lengths and step are those
/// of the step. On the CPU, rows of dx and ds may have gaps between them. Bytes: every tensor once; about 8 flops per
/// gate.
struct RecurrentCellBackwardArgs {
  TensorView dx, ds, dh, dc, g, gates, h_next, c_next, h, c, lengths;
  int64_t step = 0;

  /// Returns the minimum work of a call.
  Work work(std::string_view) const {
    return {bytes(dx, ds, dh, dc, g, gates, h), 8 * count(dx), dx.dtype};
  }
};
extern constinit Kernel<void(const RecurrentCellBackwardArgs&, Stream&)> rnn_tanh_cell_backward, rnn_relu_cell_backward,
    gru_cell_backward, lstm_cell_backward;

}  // namespace levin::kernels
