// The Trainer's components in custom loops.
#include <levin/interop/safetensors.h>

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

TEST_CASE("a loop over Fabric matches the Trainer bit for bit") {
  for (const std::string precision : {"32-true", "64-true", "16-mixed", "bf16-mixed", "16-o2"}) {
    INFO(precision);
    CHECK(by_fabric(precision, {}) == by_trainer(precision, {}));
    CHECK(by_fabric(precision, 0.1) == by_trainer(precision, 0.1));
  }
  CHECK(by_fabric("32-true", 0.1) != by_fabric("32-true", {}));
}

TEST_CASE("the Trainer matches a plain loop bit for bit") {
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

TEST_CASE("Fabric saves and loads the set-up objects") {
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

TEST_CASE("Fabric keeps the configuration it is given beside a strategy") {
  const auto callback = std::make_shared<LambdaCallback>(LambdaHooks{});
  const Fabric fabric(make_strategy("single"), {.strategy = "ddp",
                                                .precision = "bf16-true",
                                                .bagua = {.warmup_steps = 7},
                                                .fsdp = {.unit_size = 5},
                                                .callbacks = {callback}});
  CHECK(fabric.config().strategy == "single");
  CHECK(fabric.config().precision == "bf16-true");
  CHECK(fabric.config().bagua.warmup_steps == 7);
  CHECK(fabric.config().fsdp.unit_size == 5);
  REQUIRE(fabric.config().callbacks.size() == 1);
  CHECK(fabric.config().callbacks[0].get() == callback.get());
}

TEST_CASE("Fabric: load_raw takes the weights of a file, strictly or as far as they fit") {
  const TempDir folder;
  const auto file = folder.path / "weights.safetensors";
  manual_seed(1);
  const Plain given;
  StateDict more = given.state_dict();
  more.set("extra", ones({2}));
  interop::save_safetensors(file, given.state_dict());
  interop::save_safetensors(folder.path / "more.safetensors", more);
  for (const std::string precision : {"32-true", "16-o2"}) {
    CAPTURE(precision);
    Fabric fabric({.precision = precision});
    manual_seed(2);
    Plain model;
    fabric.setup(model, [&] { return model.configure_optimizers(); });
    const auto before = values_of(model);
    const std::string said = message_of<StateError>([&] { fabric.load_raw(folder.path / "more.safetensors", model); });
    CHECK_MESSAGE(contains(said, "[load_raw] " + (folder.path / "more.safetensors").string()), said);
    CHECK_MESSAGE(contains(said, "extra"), said);
    CHECK(values_of(model) == before);
    const nn::LoadReport report = fabric.load_raw(folder.path / "more.safetensors", model, /*strict=*/false);
    CHECK(report.unexpected == std::vector<std::string>{"extra"});
    CHECK(report.missing.empty());
    if (precision == "32-true") CHECK(values_of(model) == values_of(given));
    StateDict less;
    for (const auto& [name, t] : given.state_dict())
      if (name != "fc2.bias") less.set(name, t * 2.0);
    interop::save_safetensors(folder.path / "less.safetensors", less);
    CHECK(fabric.load_raw(folder.path / "less.safetensors", model, false).missing ==
          std::vector<std::string>{"fc2.bias"});
    CHECK(fabric.precision().weights(model).at("fc1.bias").to_vector<float>() ==
          less.at("fc1.bias").to_vector<float>());
    fabric.load_raw(file, model);
    for (const auto& [name, t] : fabric.precision().weights(model))
      CHECK(t.to_vector<float>() == given.state_dict().at(name).to_vector<float>());
    less.set("fc2.bias", zeros({3}, {.dtype = kFloat64}));
    interop::save_safetensors(folder.path / "doubles.safetensors", less);
    CHECK(fabric.load_raw(folder.path / "doubles.safetensors", model).converted ==
          std::vector<std::string>{"fc2.bias"});
    CHECK_THROWS_AS(fabric.load_raw(folder.path / "none.safetensors", model), IoError);
  }
}

TEST_CASE("Fabric's helper functions") {
  struct Sink : Logger {
    std::vector<double> got;
    void log_metrics(const LogRecord& r) override { got.push_back(r.values.at(0).second); }
    void resume(std::int64_t) override {}
    void save() override {}
    std::string log_dir() const override { return {}; }
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
  CHECK(contains(message_of<UsageError>([&] { fabric.setup<2>(model, [&] { return model.configure_optimizers(); }); }),
                 "1 optimizers were given, but 2 were requested"));
  CHECK_THROWS_AS(fabric.backward(ones({2}).requires_grad_()), ShapeError);
  const auto quiet_scope = fabric.no_backward_sync();
}
