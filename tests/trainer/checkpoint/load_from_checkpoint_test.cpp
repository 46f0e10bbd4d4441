// Networks and hyper-parameters from a checkpoint; saving by hand.
#include <levin/core/warning.h>
#include <levin/trainer/checkpoint/checkpoint.h>

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

namespace fs = std::filesystem;

struct Sized : ToyModule {
  explicit Sized(const StateMap& h) : extra(add<nn::Linear>("extra", 3, h.get<std::int64_t>("hidden"))) {
    save_hyperparameters(h);
  }
  nn::Linear& extra;
  std::string loaded;
  void on_save_checkpoint(StateMap& m) override { m.set("note", std::string("kept")); }
  void on_load_checkpoint(const StateMap& m) override { loaded = m.get<std::string>("note"); }
};

/// A network without `extra` and with another layer.
struct Partial : ToyModule {
  nn::Linear& other = add<nn::Linear>("other", 2, 2);
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
};

void train(LevinModule& model, Trainer& trainer, const std::string& ckpt = {}) {
  data::DataLoader train(toy_points(8), {.batch_size = 4}), val(toy_points(4), {.batch_size = 4});
  trainer.fit(model, train, val, ckpt);
}

}  // namespace

TEST_CASE("load_from_checkpoint constructs the network from its hyper-parameters and draws no random numbers") {
  const TempDir f;
  manual_seed(1);
  Sized model(StateMap{{"hidden", 5}, {"lr", 1e-3}, {"name", "toy"}});
  Trainer trainer(quiet({.max_epochs = 1}));
  train(model, trainer);
  trainer.save_checkpoint(f.path / "a");
  trainer.save_checkpoint(f.path / "w", /*weights_only=*/true);
  const auto before = default_generator().state();
  for (const char* name : {"a", "w"}) {
    const auto net = load_from_checkpoint<Sized>(f.path / name);
    CHECK(values_of(*net) == values_of(model));
    CHECK(net->extra.weight.sizes() == Shape{5, 3});
    CHECK(net->hparams() == model.hparams());
    CHECK(net->hparams().get<double>("lr") == 1e-3);
  }
  CHECK(default_generator().state() == before);
  CHECK(read_checkpoint(f.path / "w").weights_only());
  CHECK(read_checkpoint(f.path / "w").tensors.empty());
  const auto wider = message_of<StateError>([&] {
    load_from_checkpoint<Sized>(f.path / "a", StateMap{{"hidden", 6}});
  });
  CHECK_MESSAGE(contains(wider, "belongs to another network"), wider);
  CHECK(contains(wider, "extra.weight"));
}

TEST_CASE("strict or partial loading: both lists of names are reported") {
  const TempDir f;
  manual_seed(1);
  Sized model(StateMap{{"hidden", 5}});
  Trainer trainer(quiet({.max_epochs = 1}));
  train(model, trainer);
  trainer.save_checkpoint(f.path / "a");
  const auto said = message_of<StateError>([&] { load_from_checkpoint<Partial>(f.path / "a"); });
  for (const char* name : {"other.weight", "other.bias", "extra.weight", "extra.bias"})
    CHECK_MESSAGE(contains(said, name), said);
  const auto net = load_from_checkpoint<Partial>(f.path / "a", {.strict = false});
  CHECK(net->fc1.weight.to_vector<float>() == model.fc1.weight.to_vector<float>());
  CHECK(net->hparams().get<std::int64_t>("hidden") == 5);

  Partial part;
  Trainer tests(quiet());
  const DataModule data{.test = std::make_shared<data::DataLoader>(toy_points(4), data::DataLoaderOptions{})};
  CHECK_THROWS_AS(tests.test(part, data, (f.path / "a").string()), StateError);
  const auto other = part.other.weight.to_vector<float>();
  part.strict_loading = false;
  CHECK(tests.test(part, data, (f.path / "a").string())[0].count("test_acc") == 1);
  CHECK(part.fc1.weight.to_vector<float>() == model.fc1.weight.to_vector<float>());
  CHECK(part.other.weight.to_vector<float>() == other);
}

TEST_CASE("weights of another floating type are converted, with one warning") {
  const TempDir f;
  ToyModule model;
  Trainer trainer(quiet({.max_epochs = 1, .precision = "64-true"}));
  train(model, trainer);
  trainer.save_checkpoint(f.path / "a");
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  const auto net = load_from_checkpoint<ToyModule>(f.path / "a");
  ToyModule same;
  Trainer tests(quiet());
  const DataModule data{.test = std::make_shared<data::DataLoader>(toy_points(4), data::DataLoaderOptions{})};
  tests.test(same, data, (f.path / "a").string());
  set_warning_handler(former);
  const std::string wanted =
      (f.path / "a").string() + ": 4 tensors converted to the network's dtype: fc1.weight, ...";
  CHECK(said == std::vector<std::string>{wanted, wanted});
  CHECK(net->fc1.weight.dtype() == kFloat32);
  CHECK(values_of(*net) == values_of(model));
  CHECK(values_of(same) == values_of(model));
}

TEST_CASE("hyper-parameters are printed with the summary") {
  const TempDir f;
  Sized model(StateMap{{"hidden", 5}, {"lr", 0.25}, {"name", "toy"}});
  std::FILE* out = std::fopen((f.path / "out").c_str(), "w");
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {ModelSummary({.out = out})};
  Trainer trainer(config);
  train(model, trainer);
  std::fclose(out);
  const std::string text = io::read_text(f.path / "out");
  CHECK_MESSAGE(contains(text, "hyper-parameters: hidden=5, lr=0.25, name=toy\n"), text);
}

TEST_CASE("save_checkpoint: before a fit, in a hook, after the network is destroyed; training resumes from each") {
  const TempDir f;
  Trainer trainer(quiet({.max_epochs = 2}));
  CHECK(contains(message_of<UsageError>([&] { trainer.save_checkpoint(f.path / "x"); }), "nothing was trained yet"));
  struct Saves : ToyModule {
    Trainer* trainer = nullptr;
    fs::path dir;
    void on_train_batch_end(const StepOutput&, const Batch&, int) override {
      if (global_step() == 3) trainer->save_checkpoint(dir / "in_hook");
    }
  };
  std::vector<std::vector<float>> weights;
  {
    manual_seed(1);
    Saves model;
    model.trainer = &trainer;
    model.dir = f.path;
    train(model, trainer);
    weights = values_of(model);
  }
  trainer.save_checkpoint(f.path / "after");
  const auto go_on = [&](std::int64_t epochs, const char* name) {
    ToyModule model;
    Trainer next(quiet({.max_epochs = epochs}));
    train(model, next, (f.path / name).string());
    return std::pair(values_of(model), model.losses.size());
  };
  CHECK(go_on(2, "in_hook") == std::pair(weights, std::size_t{1}));
  CHECK(go_on(2, "after") == std::pair(weights, std::size_t{0}));
  CHECK(go_on(3, "after").second == 2);
}

TEST_CASE("checkpoints written beside training: the same bytes, errors at the next save or at the end") {
  const TempDir f;
  const auto fit = [&](const fs::path& dir, bool async, std::int64_t fails_in, std::int64_t epochs) {
    struct Fails : Callback {
      Fails(fs::path d, std::int64_t e) : last(std::move(d) / "last"), epoch(e) {}
      fs::path last;
      std::int64_t epoch;
      void on_train_epoch_start(RunContext& run) override {
        if (run.state.epoch != epoch) return;
        while (!fs::exists(last)) usleep(1000);  // the former one is written
        io::fail_writes_after(100);
      }
    };
    manual_seed(1);
    ToyModule model;
    auto config = quiet({.max_epochs = epochs, .async_checkpoints = async});
    const auto policy = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{.dirpath = dir, .save_top_k = -1});
    config.callbacks = {Fails(dir, fails_in), policy};
    Trainer trainer(config);
    const auto said = message_of<IoError>([&] { train(model, trainer); });
    io::fail_writes_after(-1);
    return std::tuple(said, fs::path(policy->best_model_path()).filename().string(), model.losses.size());
  };
  fit(f.path / "sync", false, -1, 3);
  const auto [none, best, steps] = fit(f.path / "async", true, -1, 3);
  CHECK(none == "nothing was thrown");
  CHECK(steps == 6);
  for (const char* name : {"epoch=0-step=2", "epoch=1-step=4", "epoch=2-step=6"})
    for (const char* file : {"model.safetensors", "state.safetensors"})
      CHECK(io::read_file(f.path / "sync" / name / file) == io::read_file(f.path / "async" / name / file));
  CHECK(fs::canonical(f.path / "async/last").filename() == "epoch=2-step=6");

  const auto [next, best_of_next, steps_of_next] = fit(f.path / "next", true, 1, 4);
  CHECK_MESSAGE(contains(next, "epoch=1-step=4 was not saved"), next);
  CHECK(best_of_next == "epoch=0-step=2");
  CHECK(steps_of_next == 6);  // it is said when epoch 2 wants to save
  const auto [end, best_of_end, steps_of_end] = fit(f.path / "end", true, 1, 2);
  CHECK_MESSAGE(contains(end, "epoch=1-step=4 was not saved"), end);
  CHECK(best_of_end == "epoch=0-step=2");
  CHECK(steps_of_end == 4);
}
