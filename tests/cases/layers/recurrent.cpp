#include "cases/cases.h"

#include <levin/autograd/ops.h>
#include <levin/autograd/ops/recurrent.h>

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace levin::test {

namespace {

struct Layer {
  RecurrentCell cell = RecurrentCell::lstm;
  int64_t steps = 3, batch = 2, hidden = 3;
  bool bias = true, reverse = false, lengths = false;

  int64_t gates() const { return cell == RecurrentCell::lstm ? 4 : cell == RecurrentCell::gru ? 3 : 1; }
  bool has_c() const { return cell == RecurrentCell::lstm; }
};

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

/// Computes the next h, and c, of one value from its gates.
void next_state(const Layer& l, const std::vector<double>& x, const std::vector<double>& s, double& h, double& c) {
  switch (l.cell) {
    case RecurrentCell::rnn_tanh:
      h = std::tanh(x[0] + s[0]);
      break;
    case RecurrentCell::rnn_relu:
      h = x[0] + s[0] < 0 ? 0 : x[0] + s[0];
      break;
    case RecurrentCell::gru: {
      const double fresh = std::tanh(x[2] + sigmoid_of(x[0] + s[0]) * s[2]), update = sigmoid_of(x[1] + s[1]);
      h = (1 - update) * fresh + update * h;
      break;
    }
    case RecurrentCell::lstm:
      c = sigmoid_of(x[1] + s[1]) * c + sigmoid_of(x[0] + s[0]) * std::tanh(x[2] + s[2]);
      h = sigmoid_of(x[3] + s[3]) * std::tanh(c);
  }
}

/// Inputs: from_input, h, weight, then c, bias and lengths where the layer has them. Returns y, and c of an LSTM.
Tensors layer_reference(const Layer& l, const Tensors& in) {
  const auto at = [](int64_t i) { return static_cast<std::size_t>(i); };
  std::size_t next_input = 3;
  const auto optional = [&](bool present) {
    return present ? in[next_input++].to_vector<double>() : std::vector<double>();
  };
  const std::vector<double> x = in[0].to_vector<double>(), w = in[2].to_vector<double>();
  std::vector<double> h = in[1].to_vector<double>(), c = optional(l.has_c());
  const std::vector<double> bias = optional(l.bias);
  const std::vector<int64_t> lengths = l.lengths ? in[next_input].to_vector<int64_t>() : std::vector<int64_t>();
  std::vector<double> y(at(l.steps * l.batch * l.hidden));
  const int64_t gates = l.gates();
  for (int64_t i = 0; i < l.steps; ++i) {
    const int64_t t = l.reverse ? l.steps - 1 - i : i;
    const std::vector<double> before = h;
    for (int64_t b = 0; b < l.batch; ++b)
      for (int64_t j = 0; j < l.hidden; ++j) {
        std::vector<double> from_input(at(gates)), from_state(at(gates));
        for (int64_t g = 0; g < gates; ++g) {
          const int64_t row = g * l.hidden + j;
          from_input[at(g)] = x[at((t * l.batch + b) * gates * l.hidden + row)];
          double& sum = from_state[at(g)] = bias.empty() ? 0 : bias[at(row)];
          for (int64_t k = 0; k < l.hidden; ++k) sum += w[at(row * l.hidden + k)] * before[at(b * l.hidden + k)];
        }
        double none = 0, &state = h[at(b * l.hidden + j)];
        if (!l.lengths || t < lengths[at(b)])
          next_state(l, from_input, from_state, state, l.has_c() ? c[at(b * l.hidden + j)] : none);
        y[at((t * l.batch + b) * l.hidden + j)] = state;
      }
  }
  Tensors result{from_data(y, {l.steps, l.batch, l.hidden})};
  if (l.has_c()) result.push_back(from_data(c, {l.batch, l.hidden}));
  return result;
}

Sample layer_sample(const Layer& l) {
  const Shape state{l.batch, l.hidden};
  const int64_t gates = l.gates() * l.hidden;
  Sample s = sample({{l.steps, l.batch, gates}, state, {gates, l.hidden}}, uniform(-1, 1));
  if (l.has_c()) s.inputs.push_back({.sizes = state});
  if (l.bias) s.inputs.push_back({.sizes = {gates}});
  if (l.lengths) s.inputs.push_back(index_input({l.batch}, l.steps + 1));
  for (InputSpec& i : s.inputs) i.finite = true;  // a saturated gate hides an infinity, or multiplies it by 0
  // Errors of a state reach all later ones through the weights, whose rows sum to about sqrt(hidden) / 2.
  s.terms = l.steps * (l.hidden + 2);
  s.grad_terms = l.steps * l.batch * (gates + 2);
  s.label = fmt::format("{}{}{}", std::array{"rnn_tanh", "rnn_relu", "gru", "lstm"}[static_cast<std::size_t>(l.cell)],
                        l.reverse ? " reverse" : "", l.lengths ? " lengths" : "");
  s.op = [l](const Tensors& in) -> Tensors {
    std::size_t next = 3;
    const auto optional = [&](bool present) { return present ? in[next++] : Tensor(); };
    const Tensor c = optional(l.has_c()), bias = optional(l.bias), lengths = optional(l.lengths);
    const auto [y, last_c] =
        recurrent_steps(l.cell, in[0], {in[1], c, in[2], bias}, {.lengths = lengths, .reverse = l.reverse});
    return l.has_c() ? Tensors{y, last_c} : Tensors{y};
  };
  s.reference = [l](const Tensors& in) { return layer_reference(l, in); };
  return s;
}

Sample random_recurrent_layer(Draw& d) {
  const auto cell = d.of(std::array{RecurrentCell::rnn_tanh, RecurrentCell::gru, RecurrentCell::lstm});
  return layer_sample({.cell = cell,
                       .steps = d.between(1, 5),
                       .batch = d.between(1, 4),
                       .hidden = d.between(1, 9),
                       .bias = d.chance(70),
                       .reverse = d.chance(30),
                       .lengths = d.chance(30)});
}

void run(RecurrentCell cell, const Shape& x, const Shape& h, const Shape& w, const Tensor& c = {}) {
  recurrent_steps(cell, zeros(x), {zeros(h), c, zeros(w), {}});
}

}  // namespace

std::vector<OpCase> recurrent_cases() {
  OpCase c{.name = "recurrent_steps"};
  using enum RecurrentCell;
  c.samples = {layer_sample({.cell = rnn_tanh, .steps = 4}),
               layer_sample({.cell = rnn_relu, .bias = false, .reverse = true}),
               layer_sample({.cell = gru, .steps = 2, .hidden = 5}),
               layer_sample({.cell = gru, .batch = 3, .bias = false, .reverse = true, .lengths = true}),
               layer_sample({.cell = lstm, .steps = 2, .hidden = 5}),
               layer_sample({.cell = lstm, .batch = 3, .reverse = true}),
               layer_sample({.cell = lstm, .batch = 4, .bias = false, .lengths = true}),
               layer_sample({.cell = rnn_tanh, .batch = 3, .lengths = true}),
               layer_sample({.cell = lstm, .steps = 1, .batch = 1, .hidden = 1})};
  c.large = {layer_sample({.cell = lstm, .steps = 2, .batch = 37, .hidden = 67}),
             layer_sample({.cell = gru, .steps = 2, .batch = 37, .hidden = 67, .lengths = true}),
             // Rows of gates of a multiple of 1 KiB, whose gradients have gaps between them on the CPU.
             layer_sample({.cell = lstm, .steps = 2, .batch = 3, .hidden = 64}),
             layer_sample({.cell = gru, .steps = 2, .batch = 3, .hidden = 256, .lengths = true})};
  // A parallel task has 4,096 gates: 64 samples of an rnn, or one more.
  c.limits = {layer_sample({.cell = rnn_tanh, .steps = 2, .batch = 64, .hidden = 64}),
              layer_sample({.cell = rnn_tanh, .steps = 2, .batch = 65, .hidden = 64})};
  c.draw = random_recurrent_layer;
  c.op = c.samples[0].op;
  c.reference = c.samples[0].reference;
  c.dtypes = kFloatTypes;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};
  c.tolerance = {.ulps = 8, .scale = 2};
  c.grad_tolerance = {.ulps = 32, .scale = 2};
  c.rounded = c.grad_rounded = 4;  // a device rounds each step's product and states to 16 bits
  c.bench = {layer_sample({.steps = 32, .batch = 32, .hidden = 256})};
  c.errors = {{"from_input is (2, 3), but (T, B, 4 * H)", [] { run(lstm, {2, 3}, {2, 3}, {12, 3}); }},
              {"from_input is (2, 3, 7), but (T, B, 3 * H)", [] { run(gru, {2, 3, 7}, {3, 2}, {6, 2}); }},
              {"from_input is (0, 3, 6), but (T, B, 3 * H) with a step at least",
               [] { run(gru, {0, 3, 6}, {3, 2}, {6, 2}); }},
              {"h is (3, 4), but from_input of (2, 3, 6) needs (3, 2)", [] { run(gru, {2, 3, 6}, {3, 4}, {6, 2}); }},
              {"c is (1, 2), but", [] { run(lstm, {2, 3, 8}, {3, 2}, {8, 2}, zeros({1, 2})); }},
              {"weight_hh is (2, 6), but", [] { run(gru, {2, 3, 6}, {3, 2}, {2, 6}); }},
              {"bias_hh is (2,), but",
               [] { recurrent_steps(gru, zeros({2, 3, 6}), {zeros({3, 2}), {}, zeros({6, 2}), zeros({2})}); }},
              {"lengths is (2,), but from_input of (2, 3, 6) needs (3,)",
               [] {
                 recurrent_steps(gru, zeros({2, 3, 6}), {zeros({3, 2}), {}, zeros({6, 2}), {}},
                                 {.lengths = ones({2}, {.dtype = kInt64})});
               }},
              {"from_input is float32, h is float64, weight_hh is float32: their types have to be equal", [] {
                 recurrent_steps(gru, zeros({2, 3, 6}), {zeros({3, 2}, {.dtype = kDouble}), {}, zeros({6, 2}), {}});
               }}};
  return {c};
}

}  // namespace levin::test
