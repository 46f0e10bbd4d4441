#pragma once
// Recurrent layers: RNN, LSTM and GRU of several layers and both directions, and their cells. Names of parameters,
// defaults and initial values (uniform in +-1 / sqrt(hidden_size)) are PyTorch's.

#include <levin/nn/layer.h>

#include <utility>
#include <vector>

namespace levin {
enum class RecurrentCell;  // ops/recurrent.h
}

namespace levin::nn {

/// Options of LSTM and GRU.
struct RecurrentOptions {
  int64_t num_layers = 1;      ///< layers, each of which reads the outputs of the one before
  bool bias = true;            ///< adds b_ih and b_hh
  bool batch_first = false;    ///< x and the output are (B, T, ...) instead of (T, B, ...); states are not
  double dropout = 0.0;        ///< probability between the layers, in training
  bool bidirectional = false;  ///< adds a second direction, from the last step to the first, with weights of its own
};
/// Activation of RNN and RNNCell.
enum class RecurrentNonlinearity { tanh, relu };

/// The hidden state h and the cell state c of an LSTM, of equal shapes; undefined ones are zeros.
struct LSTMState {
  Tensor h, c;
  /// Lists the tensors for for_each_tensor.
  auto fields() { return std::tie(h, c); }
};

/// Base of the recurrent layers. x is (T, B, input_size), (B, T, input_size) with batch_first, or (T, input_size)
/// without a batch; states are (layers * directions, B, hidden_size), zeros by default; the output has hidden_size *
/// directions features. `lengths` (one for each sample, at most T) let a sample end earlier, as PyTorch's packed
/// sequences do: its state is that of its last step, and its outputs after that are zeros. Parameters are weight_ih_l0,
/// weight_hh_l0, bias_ih_l0 and bias_hh_l0 of the first layer, with _l1 of the second and so on, and with _reverse at
/// the end for the second direction. forward throws ShapeError for other shapes and another number of lengths, and
/// ValueError for a length outside of [1, T]; the constructors throw ValueError for input_size, hidden_size or
/// num_layers below 1 and for a dropout outside of [0, 1].
class Recurrent : public Module {
 public:
  std::string extra_repr() const override;
  /// Initializes all parameters anew, uniformly in +-1 / sqrt(hidden_size).
  void reset_parameters();

  const int64_t input_size, hidden_size;
  const RecurrentOptions options;

 protected:
  /// `gates` is the number of blocks of hidden_size rows in each weight, which `cell` defines.
  Recurrent(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options, int64_t gates,
            RecurrentCell cell);
  /// The result of run().
  struct Result {
    Tensor output;               ///< (T, B, hidden_size * directions), in the layout of x
    std::vector<Tensor> states;  ///< the last states, (layers * directions, B, hidden_size): h, and c of an LSTM
  };
  /// Runs all layers from these states; undefined ones are zeros.
  Result run(const Tensor& x, std::vector<Tensor> states, const std::vector<int64_t>& lengths);

 private:
  struct Direction {
    Parameter *weight_ih, *weight_hh, *bias_ih, *bias_hh;
  };
  std::vector<Tensor> initial_states(const Tensor& x, std::vector<Tensor> states, bool batched) const;

  RecurrentCell cell_;
  std::vector<Direction> directions_;  // layer 0 forwards, layer 0 backwards, layer 1 forwards, ...
};

/// Options of RNN: RecurrentOptions and the nonlinearity. num_layers, bias, batch_first, dropout and bidirectional are
/// as there.
struct RNNOptions {
  int64_t num_layers = 1;
  RecurrentNonlinearity nonlinearity = RecurrentNonlinearity::tanh;  ///< of the new state
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;
  bool bidirectional = false;
};
/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh), or max(0, ...) with the nonlinearity relu (Elman 1990), from input_size to
/// hidden_size features. Returns the output and the last state of each layer, see Recurrent: `auto [y, h] = rnn(x);`
class RNN : public Layer<RNN, Recurrent> {
 public:
  using Options = RNNOptions;
  RNN(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, Tensor> forward(Tensor x, const Tensor& h0 = {}, const std::vector<int64_t>& lengths = {});
  auto with_arguments(auto construct) const { return construct(input_size, hidden_size, own_options); }

  const Options own_options;  ///< those of the constructor; `options` has them without the nonlinearity
};

/// Gated recurrent units (Cho et al. 2014), from input_size to hidden_size features. With a = W_ih x + b_ih and s =
/// W_hh h + b_hh, whose rows hold the gates r (reset), z (update) and n (new) in this order: r = sigmoid(a_r + s_r), z
/// = sigmoid(a_z + s_z), n = tanh(a_n + r s_n), h' = (1 - z) n + z h. Returns the output and the last state of each
/// layer, see Recurrent: `auto [y, h] = gru(x);`
class GRU : public Layer<GRU, Recurrent> {
 public:
  using Options = RecurrentOptions;
  GRU(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, Tensor> forward(Tensor x, const Tensor& h0 = {}, const std::vector<int64_t>& lengths = {});
  auto with_arguments(auto construct) const { return construct(input_size, hidden_size, options); }
};

/// Long short-term memory (Hochreiter & Schmidhuber 1997), from input_size to hidden_size features. With
/// a = W_ih x + b_ih + W_hh h + b_hh, whose rows hold the gates i (input), f (forget), g (cell) and o (output) in this
/// order: c' = sigmoid(a_f) c + sigmoid(a_i) tanh(a_g), h' = sigmoid(a_o) tanh(c'). Returns the output and the last
/// states, see Recurrent: `auto [y, state] = lstm(x);`
class LSTM : public Layer<LSTM, Recurrent> {
 public:
  using Options = RecurrentOptions;
  LSTM(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, LSTMState> forward(Tensor x, const LSTMState& state = {}, const std::vector<int64_t>& lengths = {});
  auto with_arguments(auto construct) const { return construct(input_size, hidden_size, options); }
};

// Cells

/// Options of GRUCell and LSTMCell.
struct CellOptions {
  bool bias = true;  ///< adds bias_ih and bias_hh
};
/// Base of the cells: one step of (B, input_size) or (input_size) and a state (B, hidden_size) or (hidden_size), zeros
/// if it is undefined; returns the next state. forward throws ShapeError for other shapes.
class RecurrentCellBase : public Module {
 public:
  std::string extra_repr() const override;

  const int64_t input_size, hidden_size;
  Parameter& weight_ih;  ///< (gates * hidden_size, input_size)
  Parameter& weight_hh;  ///< (gates * hidden_size, hidden_size)
  Parameter &bias_ih, &bias_hh;  ///< (gates * hidden_size) or undefined

 protected:
  /// Initializes all parameters uniformly in +-1 / sqrt(hidden_size). Throws ValueError for a hidden_size below 1.
  RecurrentCellBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t gates);
  /// Returns the next states, h and for an LSTM c.
  std::vector<Tensor> step(const Tensor& x, std::vector<Tensor> states, RecurrentCell cell) const;
};

/// Options of RNNCell.
struct RNNCellOptions {
  bool bias = true;                                                  ///< adds bias_ih and bias_hh
  RecurrentNonlinearity nonlinearity = RecurrentNonlinearity::tanh;  ///< of the new state
};
/// One step of RNN: from x with input_size features and h with hidden_size to the next h.
class RNNCell : public Layer<RNNCell, RecurrentCellBase> {
 public:
  using Options = RNNCellOptions;
  RNNCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  Tensor forward(Tensor x, const Tensor& h = {});
  auto with_arguments(auto construct) const { return construct(input_size, hidden_size, options); }

  const Options options;
};
/// One step of GRU: from x with input_size features and h with hidden_size to the next h.
class GRUCell : public Layer<GRUCell, RecurrentCellBase> {
 public:
  using Options = CellOptions;
  GRUCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  Tensor forward(Tensor x, const Tensor& h = {});
  auto with_arguments(auto construct) const {
    return construct(input_size, hidden_size, Options{.bias = bias_ih.defined()});
  }
};
/// One step of LSTM: from x with input_size features and states with hidden_size to the next states.
class LSTMCell : public Layer<LSTMCell, RecurrentCellBase> {
 public:
  using Options = CellOptions;
  LSTMCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  LSTMState forward(Tensor x, const LSTMState& state = {});
  auto with_arguments(auto construct) const {
    return construct(input_size, hidden_size, Options{.bias = bias_ih.defined()});
  }
};

}  // namespace levin::nn
