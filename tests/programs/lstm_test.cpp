#include "programs/programs.h"

using namespace levin;
using levin::test::Losses, levin::test::numbers, levin::test::with_options;

namespace {

using State = std::pair<Tensor, Tensor>;

struct LSTMCell : nn::Layer<LSTMCell> {
  int64_t inputs, hidden;
  LSTMCell(int64_t x, int64_t h) : inputs(x), hidden(h) {}
  nn::Linear& x2h = add<nn::Linear>("x2h", inputs, 4 * hidden);
  nn::Linear& h2h = add<nn::Linear>("h2h", hidden, 4 * hidden);

  State forward(const Tensor& x, const State& state) {
    auto gates = (x2h(x) + h2h(state.first)).chunk(4, 1);
    auto c = sigmoid(gates[1]) * state.second + sigmoid(gates[0]) * tanh(gates[2]);
    return {sigmoid(gates[3]) * tanh(c), c};
  }
};

struct Forecast : LevinModule {
  LSTMCell& cell = add<LSTMCell>("cell", 2, 16);
  nn::Linear& out = add<nn::Linear>("out", 16, 1);

  Tensor forward(const Tensor& x) override {
    auto zero = zeros({x.size(0), cell.hidden}, like(x));
    State state{zero, zero};
    for (int64_t t = 0; t < x.size(1); ++t) state = cell(x(Slice(), t), state);
    return out(state.first).squeeze(1);
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [x, y] = batch;
    auto loss = mse_loss(forward(x), y);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  Optimizers configure_optimizers() override { return optim::Adam(parameters(), 1e-2); }
};

void run() {
  auto x = numbers({64, 9, 2}, 3);
  data::TensorDataset data({x, x(Slice(), 0, 0) * x(Slice(), -1, 1)});
  data::DataLoader loader(data, {.batch_size = 16});
  Forecast model;
  Trainer trainer(with_options({.max_epochs = 5, .gradient_clip_val = 0.5, .gradient_clip_algorithm = "value",
                                .callbacks = {Losses("lstm")}}));
  trainer.fit(model, loader);
}

}  // namespace

TEST_CASE("an LSTM by hand trains as in PyTorch") { levin::test::in_both_precisions(run); }
