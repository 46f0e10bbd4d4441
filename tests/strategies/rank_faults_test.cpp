// Faults of one rank to which all must react alike. A test case starts itself again once per rank.
#include <cmath>
#include <limits>

#include "strategies/ranks.h"

using namespace levin;
using namespace levin::test;

namespace {

/// On rank 1 one gradient of batch 2 is infinite, behind backward's own sums.
struct InfiniteOnce : ToyModule {
  explicit InfiniteOnce(bool steps_by_hand) : ToyModule({.dropout = 0, .use_sgd = true}) {
    automatic_optimization = !steps_by_hand;
  }
  StepOutput training_step(const Batch& b, int index) override {
    const Tensor hidden = relu(fc1(b[0])), loss = cross_entropy(fc2(hidden), b[1]);
    if (index == 2 && rank() == 1)
      hidden.register_hook([](const Tensor& g) { return g * std::numeric_limits<float>::infinity(); });
    if (automatic_optimization) return loss;
    auto [opt] = optimizers<1>();
    opt.zero_grad();
    manual_backward(loss);
    opt.step();
    return loss;
  }
};

}  // namespace

TEST_CASE("fault: a gradient that is infinite on only one rank skips the step on all") {
  pass_on(3, [] {
    for (const bool by_hand : {false, true})
      for (const std::string hook : {"none", "bf16_compress", "post_local_sgd"}) {
        CAPTURE(by_hand);
        CAPTURE(hook);
        manual_seed(3);
        InfiniteOnce model(by_hand);
        data::DataLoader train(toy_points(72), {.batch_size = 4, .shuffle = true, .seed = 7});  // 6 batches a rank
        TrainerConfig config{.max_epochs = 1, .precision = "16-mixed", .ddp = {.comm_hook = hook}};
        if (hook == "post_local_sgd") {
          config.ddp.model_averaging_period = 2;
          config.ddp.post_local_gradient_allreduce = false;
        }
        struct Seen {
          std::vector<std::vector<std::vector<float>>> weights;  // after each batch
          std::vector<double> scales;
        } seen;
        config.callbacks = {
            LambdaCallback({.on_train_batch_end = [&](RunContext& run, const StepOutput&, const Batch&, int) {
              seen.weights.push_back(values_of(run.module));
              seen.scales.push_back(run.precision->state().get<double>("scale"));
            }})};
        Trainer trainer(with_strategy("ddp", config));
        trainer.fit(model, train);
        REQUIRE(seen.weights.size() == 6);
        CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{5});
        CHECK(seen.weights[1] != seen.weights[0]);
        if (hook != "post_local_sgd") CHECK(seen.weights[2] == seen.weights[1]);  // else averaged in that place
        CHECK(seen.weights[3] != seen.weights[2]);
        CHECK(seen.scales[5] == seen.scales[0] / 2);
        Strategy& strategy = trainer.fabric().strategy();
        CHECK(same_on_all(strategy, {std::vector<float>(seen.scales.begin(), seen.scales.end())}));
        CHECK(same_on_all(strategy, values_of(model)));
        for (const auto& values : values_of(model))
          for (const float v : values) CHECK(std::isfinite(v));
      }
  });
}
