#include <levin/nn/recurrent.h>

#include "layer_checks.h"

#include <levin/autograd/ops.h>
#include <levin/autograd/ops/recurrent.h>
#include <levin/autograd/trace.h>
#include <levin/nn/init.h>

#include <algorithm>
#include <cmath>

namespace levin::nn {

namespace {

using Tensors = std::vector<Tensor>;

RecurrentCell rnn_cell(RecurrentNonlinearity n) {
  return n == RecurrentNonlinearity::tanh ? RecurrentCell::rnn_tanh : RecurrentCell::rnn_relu;
}

std::size_t states_of(RecurrentCell cell) { return cell == RecurrentCell::lstm ? 2 : 1; }

/// Returns the weights of a direction with the states {h} or {h, c}.
RecurrentInputs inputs_of(const Tensors& states, const Tensor& weight_hh, const Tensor& bias_hh) {
  return {states[0], states.size() > 1 ? states[1] : Tensor(), weight_hh, bias_hh};
}

/// Returns the lengths as a tensor (B) on x's device, undefined without lengths.
Tensor checked_lengths(const std::vector<int64_t>& lengths, const Tensor& x) {
  if (lengths.empty()) return {};
  const int64_t steps = x.size(0), batch = x.size(1);
  if (static_cast<int64_t>(lengths.size()) != batch)
    throw ShapeError(fmt::format("[Recurrent] {} lengths for a batch of {}.", lengths.size(), batch));
  for (const int64_t n : lengths)
    if (n < 1 || n > steps) throw ValueError(fmt::format("[Recurrent] length {} is outside [1, {}].", n, steps));
  return from_data(lengths, {batch}).to(x.device());
}

/// Returns y (T, B, H) with zeros after the end of each sample.
Tensor without_padding(const Tensor& y, const Tensor& lengths) {
  const Tensor steps = arange(y.size(0), {.device = y.device()});
  return masked_fill(y, unsqueeze(ge(unsqueeze(steps, 1), lengths), -1), 0);
}

/// All steps of a direction.
struct Steps {
  RecurrentCell cell;
  bool backwards;
  const Tensor &x, &weight_ih, &bias_ih;
  const RecurrentInputs& inputs;
  const Tensor& lengths;
};

/// Returns the states of all steps and the last states.
Tensors steps_of(const Steps& s) {
  const RecurrentInputs& in = s.inputs;
  LEVIN_TRACE_CALL(steps_of(s), "recurrent",
                   {s.x, s.weight_ih, in.weight_hh, s.bias_ih, in.bias_hh, in.h, in.c, s.lengths},
                   {{"cell", s.cell}, {"reverse", s.backwards}});
  // The gates are functions of x + s, so one bias serves both products, and its gradient is one sum. In a GRU the reset
  // gate multiplies a part of s, so each product keeps its own bias.
  const bool one_bias = s.cell != RecurrentCell::gru && s.bias_ih.defined();
  const Tensor bias = one_bias ? add(s.bias_ih, in.bias_hh) : s.bias_ih;
  const Tensor from_input = linear(s.x, s.weight_ih, bias);  // all steps in one product
  const auto [y, c] = recurrent_steps(s.cell, from_input, {in.h, in.c, in.weight_hh, one_bias ? Tensor() : in.bias_hh},
                                      {.lengths = s.lengths, .reverse = s.backwards});
  Tensors result{s.lengths.defined() ? without_padding(y, s.lengths) : y,
                 select(y, 0, s.backwards ? 0 : y.size(0) - 1)};
  if (c.defined()) result.push_back(c);
  return result;
}

}  // namespace

Recurrent::Recurrent(int64_t inputs, int64_t hidden, const RecurrentOptions& o, int64_t gates,
                     RecurrentCell cell)
    : input_size(inputs), hidden_size(hidden), options(o), cell_(cell) {
  require_positive("Recurrent", "input_size", inputs);
  require_positive("Recurrent", "hidden_size", hidden);
  require_positive("Recurrent", "num_layers", o.num_layers);
  if (!(o.dropout >= 0 && o.dropout <= 1))
    throw ValueError(fmt::format("[Recurrent] dropout is {}. Give a probability between 0 and 1.", o.dropout));
  const int64_t directions = o.bidirectional ? 2 : 1;
  for (int64_t layer = 0; layer < o.num_layers; ++layer)
    for (int64_t d = 0; d < directions; ++d) {
      const std::string end = fmt::format("_l{}{}", layer, d == 1 ? "_reverse" : "");
      const int64_t features = layer == 0 ? inputs : hidden * directions;
      const auto bias = [&](const char* name) {
        return &register_parameter(name + end, o.bias ? empty({gates * hidden}) : Tensor());
      };
      Direction weights{};
      weights.weight_ih = &register_parameter("weight_ih" + end, empty({gates * hidden, features}));
      weights.weight_hh = &register_parameter("weight_hh" + end, empty({gates * hidden, hidden}));
      weights.bias_ih = bias("bias_ih");
      weights.bias_hh = bias("bias_hh");
      directions_.push_back(weights);
    }
  reset_parameters();
}

void Recurrent::reset_parameters() {
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden_size));
  for (const Parameter& p : parameters()) init::uniform_(p, -bound, bound);
}

std::string Recurrent::extra_repr() const {
  std::string text = fmt::format("{}, {}", input_size, hidden_size);
  if (options.num_layers != 1) text += fmt::format(", num_layers={}", options.num_layers);
  if (!options.bias) text += ", bias=False";
  if (options.batch_first) text += ", batch_first=True";
  if (options.dropout != 0) text += fmt::format(", dropout={}", options.dropout);
  if (options.bidirectional) text += ", bidirectional=True";
  return text;
}

Tensors Recurrent::initial_states(const Tensor& x, Tensors states, bool batched) const {
  const auto count = static_cast<int64_t>(directions_.size());
  const Shape expected{count, x.size(1), hidden_size};
  for (Tensor& s : states) {
    if (!s.defined()) {
      s = zeros(expected, like(x));
      continue;
    }
    if (!batched && s.dim() == 2) s = unsqueeze(s, 1);
    if (s.sizes() != expected)
      throw ShapeError(
          fmt::format("[{}] the state is {}, expected is {}.", type_name(), to_string(s.sizes()), to_string(expected)));
  }
  return states;
}

Recurrent::Result Recurrent::run(const Tensor& input, Tensors states, const std::vector<int64_t>& lengths) {
  if ((input.dim() != 2 && input.dim() != 3) || input.size(-1) != input_size || input.numel() == 0)
    throw ShapeError(fmt::format(
        "[{}] the input is {}, expected is {} or (T, {}), not empty.", type_name(), to_string(input.sizes()),
        options.batch_first ? fmt::format("(B, T, {})", input_size) : fmt::format("(T, B, {})", input_size),
        input_size));
  const bool batched = input.dim() == 3;
  Tensor x = !batched ? unsqueeze(input, 1) : options.batch_first ? transpose(input, 0, 1) : input;
  states = initial_states(x, std::move(states), batched);
  const Tensor ends = checked_lengths(lengths, x);
  const std::size_t directions = options.bidirectional ? 2 : 1;
  std::vector<Tensors> last(states.size());
  for (std::size_t layer = 0; layer * directions < directions_.size(); ++layer) {
    if (layer > 0) x = dropout(x, options.dropout, is_training());
    Tensors outputs;
    for (std::size_t d = 0; d < directions; ++d) {
      const std::size_t place = layer * directions + d;
      Tensors own;
      for (const Tensor& s : states) own.push_back(select(s, 0, static_cast<int64_t>(place)));
      const Direction& w = directions_[place];
      const RecurrentInputs inputs = inputs_of(own, *w.weight_hh, *w.bias_hh);
      const Tensors all = steps_of({cell_, d == 1, x, *w.weight_ih, *w.bias_ih, inputs, ends});
      outputs.push_back(all[0]);
      for (std::size_t s = 0; s < last.size(); ++s) last[s].push_back(all[s + 1]);
    }
    x = outputs.size() == 1 ? outputs[0] : cat(outputs, -1);
  }
  Result result{!batched ? squeeze(x, 1) : options.batch_first ? transpose(x, 0, 1) : x, {}};
  for (const Tensors& list : last) {
    const Tensor s = stack(list);
    result.states.push_back(batched ? s : squeeze(s, 1));
  }
  return result;
}

RNN::RNN(int64_t inputs, int64_t hidden, const Options& o)
    : Layer(inputs, hidden,
            RecurrentOptions{.num_layers = o.num_layers,
                             .bias = o.bias,
                             .batch_first = o.batch_first,
                             .dropout = o.dropout,
                             .bidirectional = o.bidirectional},
            1, rnn_cell(o.nonlinearity)),
      own_options(o) {}
std::pair<Tensor, Tensor> RNN::forward(Tensor x, const Tensor& h0, const std::vector<int64_t>& lengths) {
  const Result r = run(x, {h0}, lengths);
  return {r.output, r.states[0]};
}

GRU::GRU(int64_t inputs, int64_t hidden, const Options& o) : Layer(inputs, hidden, o, 3, RecurrentCell::gru) {}
std::pair<Tensor, Tensor> GRU::forward(Tensor x, const Tensor& h0, const std::vector<int64_t>& lengths) {
  const Result r = run(x, {h0}, lengths);
  return {r.output, r.states[0]};
}

LSTM::LSTM(int64_t inputs, int64_t hidden, const Options& o) : Layer(inputs, hidden, o, 4, RecurrentCell::lstm) {}
std::pair<Tensor, LSTMState> LSTM::forward(Tensor x, const LSTMState& state, const std::vector<int64_t>& lengths) {
  const Result r = run(x, {state.h, state.c}, lengths);
  return {r.output, {r.states[0], r.states[1]}};
}

// Cells

RecurrentCellBase::RecurrentCellBase(int64_t inputs, int64_t hidden, bool bias, int64_t gates)
    : input_size(inputs),
      hidden_size(hidden),
      weight_ih(register_parameter("weight_ih", empty({gates * hidden, inputs}))),
      weight_hh(register_parameter("weight_hh", empty({gates * hidden, hidden}))),
      bias_ih(register_parameter("bias_ih", bias ? empty({gates * hidden}) : Tensor())),
      bias_hh(register_parameter("bias_hh", bias ? empty({gates * hidden}) : Tensor())) {
  require_positive("RecurrentCell", "hidden_size", hidden);
  const double bound = 1.0 / std::sqrt(static_cast<double>(hidden));
  for (const Parameter& p : parameters()) init::uniform_(p, -bound, bound);
}

std::string RecurrentCellBase::extra_repr() const { return fmt::format("{}, {}", input_size, hidden_size); }

Tensors RecurrentCellBase::step(const Tensor& x, Tensors states, RecurrentCell cell) const {
  Shape expected = x.sizes();
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != input_size)
    throw ShapeError(fmt::format("[{}] the input is {}, expected is (B, {}) or ({},).", type_name(),
                                 to_string(x.sizes()), input_size, input_size));
  expected[x.dim() - 1] = hidden_size;
  states.resize(states_of(cell));
  for (Tensor& s : states) {
    if (!s.defined()) s = zeros(expected, like(x));
    if (s.sizes() != expected)
      throw ShapeError(
          fmt::format("[{}] the state is {}, expected is {}.", type_name(), to_string(s.sizes()), to_string(expected)));
  }
  const auto with_batch = [&](const Tensor& t) { return t.dim() == 1 ? unsqueeze(t, 0) : t; };
  for (Tensor& s : states) s = with_batch(s);
  const Tensor from_input = unsqueeze(with_batch(linear(x, weight_ih, bias_ih)), 0);  // one step
  const auto [y, c] = recurrent_steps(cell, from_input, inputs_of(states, weight_hh, bias_hh));
  Tensors next{reshape(y, expected)};
  if (c.defined()) next.push_back(reshape(c, expected));
  return next;
}

RNNCell::RNNCell(int64_t inputs, int64_t hidden, const Options& o) : Layer(inputs, hidden, o.bias, 1), options(o) {}
Tensor RNNCell::forward(Tensor x, const Tensor& h) { return step(x, {h}, rnn_cell(options.nonlinearity))[0]; }
GRUCell::GRUCell(int64_t inputs, int64_t hidden, const Options& o) : Layer(inputs, hidden, o.bias, 3) {}
Tensor GRUCell::forward(Tensor x, const Tensor& h) { return step(x, {h}, RecurrentCell::gru)[0]; }
LSTMCell::LSTMCell(int64_t inputs, int64_t hidden, const Options& o) : Layer(inputs, hidden, o.bias, 4) {}
LSTMState LSTMCell::forward(Tensor x, const LSTMState& state) {
  const Tensors next = step(x, {state.h, state.c}, RecurrentCell::lstm);
  return {next[0], next[1]};
}

}  // namespace levin::nn
