#pragma once
// The loop of a recurrent layer over its steps, which nn::RNN, nn::GRU and nn::LSTM call. ops.h does not include it.

#include <levin/core/tensor.h>

#include <utility>

namespace levin {

/// The cell of a recurrent layer; see the formulas in kernels/recurrent.h.
enum class RecurrentCell { rnn_tanh, rnn_relu, gru, lstm };

/// Weights and states of one direction of one layer.
struct RecurrentInputs {
  Tensor h;          ///< (B, H): the first state
  Tensor c;          ///< (B, H): the first cell state of an LSTM, else undefined
  Tensor weight_hh;  ///< (gates * H, H)
  Tensor bias_hh;    ///< (gates * H), or undefined
};

/// Arguments of recurrent_steps.
struct RecurrentSteps {
  Tensor lengths{};      ///< (B) int64: sample b keeps its state at the steps from lengths[b] on
  bool reverse = false;  ///< begins at the last step
};

/// Runs the cell over T steps. from_input (T, B, gates * H) holds x W_ih^T + b_ih of each step, with 1 gate (rnn), 3
/// (gru: reset, update, new) or 4 (lstm: input, forget, cell, output). Returns the state after each step (T, B, H), and
/// the last cell state (B, H) of an LSTM. All are of one floating type. Throws ShapeError and DTypeError.
std::pair<Tensor, Tensor> recurrent_steps(RecurrentCell cell, const Tensor& from_input, const RecurrentInputs& inputs,
                                          const RecurrentSteps& steps = {});

}  // namespace levin
