// fsdp (zero_3, fully_sharded) under the Trainer and Fabric, compared with ddp and one process.
#include "strategies/sharded_fits.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Its first layer is large enough to be a unit.
struct Wide : LevinModule {
  nn::Linear& up = add<nn::Linear>("up", 6, 20'000);
  nn::Linear& down = add<nn::Linear>("down", 20'000, 3);
  Tensor forward(const Tensor& x) override { return down(relu(up(x))); }
  StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
  void validation_step(const Batch& b, int) override { log("val_loss", cross_entropy((*this)(b[0]), b[1])); }
  Optimizers configure_optimizers() override { return optim::AdamW(parameters(), {.lr = 1e-3}); }
};

}  // namespace

TEST_CASE("fsdp: fits have ddp's bits with two ranks, under every name of it") {
  pass_on(2, [] {
    for (const bool use_sgd : {true, false}) {
      const FitOptions o{.config = {.max_epochs = 3, .accumulate_grad_batches = 3}, .use_sgd = use_sgd};
      const auto ddp = fit_with("ddp", o);
      for (const char* name : {"fsdp", "zero_3", "fully_sharded"}) CHECK(fit_with(name, o) == ddp);
    }
  });
}

TEST_CASE("fsdp: fits match one process with the whole batch, clipped by the norm over all ranks") {
  const auto body = [] {
    const FitOptions o{.config = {.max_epochs = 2, .gradient_clip_val = 0.05}, .use_sgd = true};
    CHECK(largest_difference(fit_with("fsdp", o), fit_with("single", o)) <= 1e-6);
  };
  in_turn({{2, body}, {3, body}, {4, body}});
}

TEST_CASE("fsdp: units of a large network, an evaluation within and after the fit, loss scaling") {
  pass_on(2, [] {
    const auto fit = [](const std::string& strategy) {
      manual_seed(3);
      Wide model;
      const std::int64_t each = strategy == "single" ? 12 : 6;
      data::DataLoader train(toy_points(24), {.batch_size = each, .seed = 1});
      data::DataLoader val(toy_points(12), {.batch_size = each});
      Trainer trainer(with_strategy(strategy, {.max_epochs = 2, .precision = "bf16-mixed"}));
      trainer.fit(model, train, val);
      const auto within = trainer.metrics().find("val_loss");
      const auto after = trainer.validate(model, val)[0].at("val_loss");
      CHECK(after == approx(*within, {.relative = 1e-6}));
      return std::pair(values_of(model), after);
    };
    const auto sharded = fit("fsdp"), ddp = fit("ddp");
    CHECK(sharded.first == ddp.first);
    CHECK(sharded.second == approx(ddp.second, {.relative = 1e-6}));
  });
}

TEST_CASE("fsdp: --fsdp-unit-size says which modules are gathered by themselves, in fits and Fabric") {
  struct Seen : ToyModule {
    using ToyModule::ToyModule;
    bool apart = false;  // a layer is not gathered while the previous one computes
    Tensor forward(const Tensor& x) override {
      const Tensor y = relu(fc1(x));
      apart = std::isnan(fc2.weight.detach().to_vector<float>()[0]);
      return fc2(y);
    }
  };
  pass_on(2, [] {
    const auto fit = [](std::int64_t size) {
      manual_seed(3);
      Seen model({.dropout = 0});
      data::DataLoader train(toy_points(24), {.batch_size = 6, .seed = 1});
      Trainer(with_strategy("fsdp", {.max_epochs = 2, .fsdp = {.unit_size = size}})).fit(model, train);
      CHECK(model.apart == (size == 30));
      return values_of(model);
    };
    CHECK(fit(30) == fit(100'000));

    Seen model({.dropout = 0});
    Fabric fabric({.accelerator = "cpu", .strategy = "fsdp", .fsdp = {.unit_size = 30}});
    auto [opt] = fabric.setup(model, [&] { return optim::AdamW(model.parameters(), {.lr = 0.02}); });
    model(ones({2, 6}));
    CHECK(model.apart);
    opt.zero_grad();
    fabric.strategy().finish(model);
  });
  CHECK(message_of<UsageError>([] { check_config({.fsdp = {.unit_size = 0}}); }) ==
        "--fsdp-unit-size 0: give 1 or more.");
}

TEST_CASE("fsdp: a resumed fit has the bits of an uninterrupted one, also within a window") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
      manual_seed(ckpt.empty() ? 3 : 999);
      ToyModule model;
      data::DataLoader train(toy_points(30), {.batch_size = 2, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
      auto config = with_strategy("fsdp", {.max_epochs = 2, .accumulate_grad_batches = 2});
      if (policy) config.callbacks = {policy};
      Trainer trainer(config);
      trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt);
      return values_of(model);
    };
    const auto whole = run(std::make_shared<SaveAlways>(dir.path), {});
    for (const int i : {0, 1, 2, 5, 8}) CHECK(run(nullptr, (dir.path / std::to_string(i)).string()) == whole);
  });
}

TEST_CASE("fsdp: a fit saved on 4 ranks resumes on 2 and on 1, also under other strategies") {
  const CommonDir dir;
  const auto fit = [&](const std::string& strategy, std::int64_t epochs, const std::string& save,
                       const std::string& ckpt) {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    data::DataLoader train(toy_points(48), {.batch_size = strategy == "single" ? 12 : 12 / ranks(), .seed = 1});
    auto config = with_strategy(strategy, {.max_epochs = epochs});
    if (!save.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir.path / save)};
    Trainer(config).fit(model, DataModule{.train = borrowed(train)}, ckpt.empty() ? "" : (dir.path / ckpt).string());
    return values_of(model);
  };
  in_turn({{4, [&] { fit("fsdp", 1, "four", ""); }}, {2, [&] {
              const auto whole = fit("single", 3, "", "");
              for (const char* to : {"fsdp", "zero_2", "ddp", "single"})
                CHECK(largest_difference(fit(to, 3, "", "four/4"), whole) <= 1e-5);
              fit("ddp", 1, "ddp", "");
              CHECK(largest_difference(fit("fsdp", 3, "", "ddp/4"), whole) <= 1e-5);
            }}});
}

TEST_CASE("fsdp: two optimizers stepped by hand, and Fabric") {
  pass_on(2, [] {
    const auto by_hand = [](const std::string& strategy) {
      manual_seed(3);
      Duel model;
      data::DataLoader train(toy_points(48), {.batch_size = strategy == "single" ? 12 : 6, .shuffle = true, .seed = 7});
      Trainer(with_strategy(strategy, {.max_epochs = 3})).fit(model, train);
      return values_of(model);
    };
    CHECK(largest_difference(by_hand("fsdp"), by_hand("single")) <= 1e-6);

    const auto with_fabric = [](const std::string& strategy) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader loader(toy_points(24), {.batch_size = strategy == "single" ? 12 : 6});
      Fabric fabric({.accelerator = "cpu", .strategy = strategy});
      auto [opt] = fabric.setup(model, [&] { return optim::AdamW(model.parameters(), {.lr = 0.02}); });
      auto batches = fabric.setup_dataloaders(loader);
      for (int epoch = 0; epoch < 3; ++epoch)
        for (const Batch& b : batches) {
          opt.zero_grad();
          fabric.backward(cross_entropy(model(b[0]), b[1]));
          opt.step();
        }
      fabric.strategy().finish(model);
      return values_of(model);
    };
    CHECK(largest_difference(with_fabric("fsdp"), with_fabric("single")) <= 1e-5);
  });
}

TEST_CASE("fsdp: features that need whole weights are refused") {
  struct Scaled : ToyModule {
    Tensor scale = register_parameter("scale", ones({1}));
  };
  const auto fit = [](LevinModule& model, const std::vector<CallbackPtr>& callbacks) {
    data::DataLoader train(toy_points(8), {.batch_size = 4});
    auto config = with_strategy("fsdp", {.max_epochs = 1});
    config.callbacks = callbacks;
    return message_of<UsageError>([&] { Trainer(config).fit(model, train); });
  };
  in_turn({{2,
            [&] {
              Scaled model;
              CHECK(contains(fit(model, {}), "[fsdp] \"scale\" belongs to Scaled itself."));
            }},
           {2, [&] {
              ToyModule model;
              CHECK(contains(fit(model, {WeightAveraging()}),
                             "[WeightAveraging] it needs the full state dict, which --strategy fsdp shards."));
            }}});
}
