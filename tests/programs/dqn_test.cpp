#include "programs/programs.h"

using namespace levin;
using levin::test::Losses, levin::test::numbers, levin::test::with_options;

namespace {

struct DQN : LevinModule {
  const double gamma = 0.9;
  const int64_t sync_every = 5;
  nn::Sequential& q = add<nn::Sequential>("q", nn::Linear(4, 32), nn::ReLU(), nn::Linear(32, 2));
  nn::Sequential& target = add<nn::Sequential>("target", nn::Linear(4, 32), nn::ReLU(), nn::Linear(32, 2));

  DQN() {
    automatic_optimization = false;
    target.requires_grad_(false);
  }
  StepOutput training_step(const Batch& batch, int) override {
    auto [state, action, reward, next, done] = batch.as<5>();
    auto [optimizer] = optimizers();
    if (global_step() % sync_every == 0) target.load_state_dict(q.state_dict());
    auto values = q(state).gather(1, action.unsqueeze(1)).squeeze(1);
    auto best = q(next).argmax(1, true);  // double DQN; no gradient passes argmax, and the target is frozen
    auto goal = reward + gamma * target(next).gather(1, best).squeeze(1) * ~done;
    auto loss = mse_loss(values, goal);
    optimizer.zero_grad();
    manual_backward(loss);
    clip_gradients(optimizer, 1.0);
    optimizer.step();
    log("loss", loss, {.prog_bar = true});
    return loss;
  }
  Optimizers configure_optimizers() override { return optim::RMSprop(q.parameters(), 1e-3); }
};

void run() {
  auto state = numbers({64, 4}, 1), next = numbers({64, 4}, 2);
  data::TensorDataset data({state, (state(Slice(), 0) > 0).to(kInt64), numbers({64}, 3), next, next(Slice(), 2) > 0.9});
  data::DataLoader loader(data, {.batch_size = 16});
  DQN model;
  Trainer trainer(with_options({.max_epochs = 5, .callbacks = {Losses("dqn")}}));
  trainer.fit(model, loader);
  levin::test::check_result("dqn/loss", trainer.callback_metrics().at("loss"));
}

}  // namespace

TEST_CASE("a DQN with its own loop trains as in PyTorch") { levin::test::in_both_precisions(run); }
