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

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;  ///< x and the output are (B, T, ...) instead of (T, B, ...)
  double dropout = 0.0;      ///< between the layers, in training
  bool bidirectional = false;
};
enum class RecurrentNonlinearity { tanh, relu };

/// The hidden and the cell state of an LSTM.
struct LSTMState {
  Tensor h, c;
  auto fields() { return std::tie(h, c); }
};

/// Base of the recurrent layers. x is (T, B, input_size), (B, T, input_size) with batch_first, or (T, input_size)
/// without a batch; states are (layers * directions, B, hidden_size), zeros by default; the output has hidden_size *
/// directions features. `lengths` (one for each sample, at most T) let a sample end earlier, as PyTorch's packed
/// sequences do: its state is that of its last step, and its outputs after that are zeros.
class Recurrent : public Module {
 public:
  std::string extra_repr() const override;
  void reset_parameters();

  const int64_t input_size, hidden_size;
  const RecurrentOptions options;

 protected:
  Recurrent(int64_t input_size, int64_t hidden_size, const RecurrentOptions& options, int64_t gates,
            RecurrentCell cell);
  struct Result {
    Tensor output;
    std::vector<Tensor> states;
  };
  /// Runs all layers from these states; undefined ones are zeros.
  Result run(const Tensor& x, std::vector<Tensor> states, const std::vector<int64_t>& lengths);

 private:
  struct Direction {
    Parameter *weight_ih, *weight_hh, *bias_ih, *bias_hh;
  };
  Result run_direction(const Direction& weights, const Tensor& x, const std::vector<Tensor>& states,
                       const Tensor& lengths, bool backwards) const;
  std::vector<Tensor> initial_states(const Tensor& x, std::vector<Tensor> states, bool batched) const;

  RecurrentCell cell_;
  std::vector<Direction> directions_;  // layer 0 forwards, layer 0 backwards, layer 1 forwards, ...
};

struct RNNOptions {
  int64_t num_layers = 1;
  RecurrentNonlinearity nonlinearity = RecurrentNonlinearity::tanh;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0.0;
  bool bidirectional = false;
};
/// h' = tanh(W_ih x + b_ih + W_hh h + b_hh) (Elman 1990). Returns the output and the last state of each layer:
/// `auto [y, h] = rnn(x);`
class RNN : public Layer<RNN, Recurrent> {
 public:
  using Options = RNNOptions;
  RNN(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, Tensor> forward(Tensor x, const Tensor& h0 = {}, const std::vector<int64_t>& lengths = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, own_options);
  }

  const Options own_options;
};

/// Gates reset, update and new (Cho et al. 2014). Returns the output and the last state of each layer.
class GRU : public Layer<GRU, Recurrent> {
 public:
  using Options = RecurrentOptions;
  GRU(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, Tensor> forward(Tensor x, const Tensor& h0 = {}, const std::vector<int64_t>& lengths = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, options);
  }
};

/// Gates input, forget, cell and output (Hochreiter & Schmidhuber 1997). Returns the output and the last states:
/// `auto [y, state] = lstm(x);`
class LSTM : public Layer<LSTM, Recurrent> {
 public:
  using Options = RecurrentOptions;
  LSTM(int64_t input_size, int64_t hidden_size, const Options& options = {});
  std::pair<Tensor, LSTMState> forward(Tensor x, const LSTMState& state = {}, const std::vector<int64_t>& lengths = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, options);
  }
};

// Cells

struct CellOptions {
  bool bias = true;
};
/// Base of the cells: one step of (B, input_size) or (input_size) and a state.
class RecurrentCellBase : public Module {
 public:
  std::string extra_repr() const override;

  const int64_t input_size, hidden_size;
  Parameter& weight_ih;  ///< (gates * hidden_size, input_size)
  Parameter& weight_hh;  ///< (gates * hidden_size, hidden_size)
  Parameter &bias_ih, &bias_hh;

 protected:
  RecurrentCellBase(int64_t input_size, int64_t hidden_size, bool bias, int64_t gates);
  std::vector<Tensor> step(const Tensor& x, std::vector<Tensor> states, RecurrentCell cell) const;
};

struct RNNCellOptions {
  bool bias = true;
  RecurrentNonlinearity nonlinearity = RecurrentNonlinearity::tanh;
};
class RNNCell : public Layer<RNNCell, RecurrentCellBase> {
 public:
  using Options = RNNCellOptions;
  RNNCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  Tensor forward(Tensor x, const Tensor& h = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, options);
  }

  const Options options;
};
class GRUCell : public Layer<GRUCell, RecurrentCellBase> {
 public:
  using Options = CellOptions;
  GRUCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  Tensor forward(Tensor x, const Tensor& h = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, Options{.bias = bias_ih.defined()});
  }
};
class LSTMCell : public Layer<LSTMCell, RecurrentCellBase> {
 public:
  using Options = CellOptions;
  LSTMCell(int64_t input_size, int64_t hidden_size, const Options& options = {});
  LSTMState forward(Tensor x, const LSTMState& state = {});
  template <class F>
  auto with_arguments(F construct) const {
    return construct(input_size, hidden_size, Options{.bias = bias_ih.defined()});
  }
};

}  // namespace levin::nn
