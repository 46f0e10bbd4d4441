// The strategy horovod. A test case starts itself again once per rank.
#include "strategies/ranks.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

std::vector<std::vector<float>> fitted(TrainerConfig config, const std::string& strategy, ToyOptions toy = {}) {
  manual_seed(3);
  toy.dropout = 0;
  ToyModule model(toy);
  if (rank() > 0) model.fc1.weight.detach().zero_();  // rank 0's values are broadcast
  data::DataLoader train(toy_points(60), {.batch_size = 5, .shuffle = true, .seed = 7});
  Trainer trainer(with_strategy(strategy, std::move(config)));
  trainer.fit(model, train);
  CHECK(same_on_all(trainer.fabric().strategy(), values_of(model)));
  return values_of(model);
}

}  // namespace

TEST_CASE("horovod: two ranks with rates unscaled have the weights of ddp to the bit") {
  pass_on(2, [] {
    for (const TrainerConfig& base :
         {TrainerConfig{.max_epochs = 3}, TrainerConfig{.max_epochs = 3, .accumulate_grad_batches = 4,
                                                        .gradient_clip_val = 0.05}}) {
      const auto ddp = fitted(base, "ddp", {.use_sgd = true});
      for (const double threshold : {64.0, 1e-4, 0.0}) {
        TrainerConfig c = base;
        c.horovod.scale_lr = false;
        c.horovod.fusion_threshold_mb = threshold;
        c.horovod.cycle_time_ms = 0;
        CHECK(fitted(c, "horovod", {.use_sgd = true}) == ddp);}
    }
  });
}

TEST_CASE("horovod: three ranks with rates unscaled have the weights of ddp within rounding, fp16 near them") {
  pass_on(3, [] {
    const auto ddp = fitted({.max_epochs = 3}, "ddp", {.use_sgd = true});
    const TrainerConfig exact{.max_epochs = 3, .horovod = {.scale_lr = false}};
    CHECK(largest_difference(fitted(exact, "horovod", {.use_sgd = true}), ddp) <= 1e-6);
    const TrainerConfig rounded{.max_epochs = 3, .horovod = {.scale_lr = false, .gradient_compression = "fp16"}};
    const double near = largest_difference(fitted(rounded, "horovod", {.use_sgd = true}), ddp);
    CHECK(near <= 5e-3);  // 12 steps of rate 0.1 and momentum, an error of 2^-10 each
    CHECK(near > 0);
  });
}

TEST_CASE("horovod/lr_is_scaled: the groups' rates and the schedules' base rates") {
  pass_on(3, [] {
    struct Rates : Callback {
      std::vector<double> seen;
      void on_train_batch_start(RunContext& run, const Batch&, int) override {
        seen.push_back(run.optimizers->optimizer().param_groups()[0]["lr"]);
      }
    };
    const auto rates = [](bool scale) {
      manual_seed(3);
      ToyModule model({.dropout = 0, .use_sgd = true});
      data::DataLoader train(toy_points(60), {.batch_size = 5, .seed = 7});
      const auto watch = std::make_shared<Rates>();
      auto config = with_strategy("horovod", {.max_epochs = 1, .horovod = {.scale_lr = scale}});
      config.callbacks = {watch};
      Trainer(config).fit(model, train);
      return watch->seen;
    };
    const auto plain = rates(false), scaled = rates(true);
    REQUIRE(plain.size() == 4);
    CHECK(plain[0] == 0.1);
    CHECK(plain[3] == approx(0.07, {.relative = 1e-12}));
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(scaled[i] == approx(3 * plain[i], {.relative = 1e-12}));
  });
}

TEST_CASE("horovod: rates are scaled once, also where an optimizer gets more parameters later") {
  struct Late : ToyModule {
    Late() : ToyModule({.dropout = 0}) {}
    Optimizers configure_optimizers() override { return optim::SGD(fc2.parameters(), {.lr = 0.1}); }
  };
  pass_on(2, [] {
    manual_seed(3);
    Late model;
    const auto before = model.fc1.weight.to_vector<float>();
    data::DataLoader train(toy_points(60), {.batch_size = 5, .seed = 7});
    auto config = with_strategy("horovod", {.max_epochs = 2});
    std::vector<double> rates;
    config.callbacks = {
        BackboneFinetuning({.backbone = "fc1", .unfreeze_backbone_at_epoch = 1, .backbone_initial_lr = 0.04}),
        LambdaCallback({.on_train_epoch_end = [&](RunContext& run) {
          for (const auto& group : run.optimizers->optimizer().param_groups()) rates.push_back(group["lr"]);
        }})};
    Trainer(config).fit(model, train);
    CHECK(rates == std::vector<double>{0.2, 0.2, 0.04});
    CHECK(model.fc1.weight.to_vector<float>() != before);
  });
}

TEST_CASE("horovod: a resumed fit has the bits of an uninterrupted one, with rates scaled once") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
      manual_seed(ckpt.empty() ? 3 : 999);
      ToyModule model;
      data::DataLoader train(toy_points(24), {.batch_size = 2, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
      auto config = with_strategy("horovod", {.max_epochs = 2});
      if (policy) config.callbacks.push_back(policy);
      Trainer trainer(config);
      trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt);
      return values_of(model);
    };
    const auto whole = run(std::make_shared<SaveAlways>(dir.path), {});
    for (const int i : {1, 4, 5}) CHECK(run(nullptr, (dir.path / std::to_string(i)).string()) == whole);
  });
}

TEST_CASE("horovod: manual optimization and Fabric average accumulated gradients") {
  pass_on(2, [] {
    const auto with_fabric = [](const std::string& strategy) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader train(toy_points(48), {.batch_size = 6, .shuffle = true, .seed = 7});
      Fabric fabric({.accelerator = "cpu", .strategy = strategy, .horovod = {.scale_lr = false}});
      fabric.launch();
      auto [first, second] = fabric.setup<2>(model, [&] {
        return Optimizers(optim::SGD(model.fc1.parameters(), {.lr = 0.1}))
            .add(optim::SGD(model.fc2.parameters(), {.lr = 0.2}));
      });
      auto loader = fabric.setup_dataloaders(train);
      for (const Batch& b : loader) {
        first.zero_grad();
        second.zero_grad();
        fabric.backward(cross_entropy(model(b[0]), b[1]));
        first.step();
        second.step();
      }
      return values_of(model);
    };
    CHECK(with_fabric("horovod") == with_fabric("ddp"));
  });
}

TEST_CASE("horovod: invalid options are refused, and environment variables are read") {
  const auto refusal = [](TrainerConfig c) {
    c.strategy = "horovod";
    return message_of<UsageError>([&] { check_config(c); });
  };
  CHECK(refusal({.horovod = {.gradient_compression = "bf16"}}) == "--gradient-compression bf16: choose none or fp16.");
  CHECK(refusal({.horovod = {.fusion_threshold_mb = -1}}) == "--fusion-threshold-mb -1: give 0 or more.");
  CHECK(refusal({.horovod = {.cycle_time_ms = -2}}) == "--cycle-time-ms -2: give 0 or more.");
  CHECK(refusal({}) == "nothing was thrown");
  pass_on(1, [] {
    setenv("HOROVOD_CYCLE_TIME", "soon", 1);
    const auto text = message_of<UsageError>([] { Trainer trainer(with_strategy("horovod")); });
    CHECK(contains(text, "HOROVOD_CYCLE_TIME is \"soon\""));
  });
}
