// The Trainer's parts under loops of one's own.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Plain : ToyModule {
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = 0.02}));
  }
};

std::vector<std::vector<float>> by_trainer(const std::string& precision, std::optional<double> clip) {
  manual_seed(7);
  Plain model;
  data::DataLoader loader(toy_points(22), {.batch_size = 4, .shuffle = true, .seed = 3});
  Trainer trainer(quiet({.max_epochs = 3, .gradient_clip_val = clip, .precision = precision}));
  trainer.fit(model, loader);
  return values_of(model);
}

std::vector<std::vector<float>> by_fabric(const std::string& precision, std::optional<double> clip) {
  Fabric::seed_everything(7);
  Plain model;
  data::DataLoader loader(toy_points(22), {.batch_size = 4, .shuffle = true, .seed = 3});
  Fabric fabric({.precision = precision});
  fabric.launch();
  auto [opt] = fabric.setup(model, [&] { return optim::AdamW(model.parameters(), {.lr = 0.02}); });
  const FabricLoader batches = fabric.setup_dataloaders(loader);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const Batch& b : batches) {
      const Tensor loss = fabric.autocast([&] { return cross_entropy(model(b[0]), b[1]); });
      opt.zero_grad();
      fabric.backward(loss);
      if (clip) fabric.clip_gradients(opt, *clip);
      opt.step();
    }
  }
  return values_of(model);
}

}  // namespace

TEST_CASE("a loop over Fabric is the Trainer, to the bit") {
  for (const std::string precision : {"32-true", "64-true", "16-mixed", "bf16-mixed", "16-o2"}) {
    INFO(precision);
    CHECK(by_fabric(precision, {}) == by_trainer(precision, {}));
    CHECK(by_fabric(precision, 0.1) == by_trainer(precision, 0.1));
  }
  CHECK(by_fabric("32-true", 0.1) != by_fabric("32-true", {}));
}

TEST_CASE("the Trainer is a plain loop, to the bit") {
  manual_seed(7);
  Plain model;
  optim::AdamW opt(model.parameters(), {.lr = 0.02});
  data::DataLoader loader(toy_points(22), {.batch_size = 4, .shuffle = true, .seed = 3});
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (const auto& [x, y] : loader) {
      const Tensor loss = cross_entropy(model(x), y);
      opt.zero_grad();
      loss.backward();
      opt.step();
    }
  }
  CHECK(values_of(model) == by_trainer("32-true", {}));
}

TEST_CASE("Fabric saves and loads what was set up") {
  const TempDir folder;
  const auto train = [&](Fabric& fabric, ToyModule& model, const OptimizerHandle& opt, int steps) {
    for (int i = 0; i < steps; ++i) {
      const Batch b = fabric.to_device(toy_points(4, static_cast<std::uint64_t>(i)).get_batch(
          std::vector<std::int64_t>{0, 1, 2, 3}, Generator(0)));
      const Tensor loss = fabric.autocast([&] { return cross_entropy(model(b[0]), b[1]); });
      opt.zero_grad();
      fabric.backward(loss);
      opt.step();
    }
  };
  manual_seed(1);
  Fabric fabric({.precision = "16-mixed"});
  Plain model;
  auto [opt] = fabric.setup(model, [&] { return model.configure_optimizers(); });
  train(fabric, model, opt, 3);
  StateMap values;
  values.set("step", std::int64_t{3});
  fabric.save(folder.path / "ckpt", model, values);
  train(fabric, model, opt, 3);

  manual_seed(99);
  Fabric other({.precision = "16-mixed"});
  Plain again;
  auto [opt2] = other.setup(again, [&] { return again.configure_optimizers(); });
  CHECK(other.load(folder.path / "ckpt", again).get<std::int64_t>("step") == 3);
  train(other, again, opt2, 3);
  CHECK(values_of(again) == values_of(model));

  Fabric bare;
  struct Other : nn::Module {
    nn::Linear& only = add<nn::Linear>("only", 2, 2);
  } wrong;
  CHECK(contains(message_of<StateError>([&] { bare.load(folder.path / "ckpt", wrong); }), "does not fit"));
}

TEST_CASE("Fabric's small friends") {
  struct Sink : Logger {
    std::vector<double> got;
    void log_metrics(const LogRecord& r) override { got.push_back(r.values.at(0).second); }
    void resume(std::int64_t) override {}
    void save() override {}
    std::filesystem::path log_dir() const override { return {}; }
  };
  const auto sink = std::make_shared<Sink>();
  Fabric fabric({.accelerator = "cpu", .loggers = {sink}});
  int runs = 0;
  fabric.launch([&] { ++runs; });
  CHECK(runs == 1);
  CHECK(fabric.device() == kCpu);
  CHECK(fabric.world_size() == 1);
  CHECK(fabric.is_global_zero());
  CHECK(fabric.all_reduce(full({2}, 3.0)).to_vector<float>() == std::vector<float>{3, 3});
  fabric.barrier();
  fabric.log("loss", 0.5, 1);
  CHECK(sink->got == std::vector<double>{0.5});
  CHECK(contains(message_of<UsageError>([] { Fabric({.strategy = "horde"}); }), "--strategy horde"));
  Plain model;
  CHECK(contains(message_of<UsageError>(
                     [&] { fabric.setup<2>(model, [&] { return model.configure_optimizers(); }); }),
                 "1 optimizers were given, and 2 asked for"));
  CHECK_THROWS_AS(fabric.backward(ones({2}).requires_grad_()), ShapeError);
  const auto quiet_scope = fabric.no_backward_sync();
}
