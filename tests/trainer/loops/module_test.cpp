// A fit's handling of steps that a module has or lacks, and its messages about batches.
#include "trainer/toy.h"

#include <levin/core/warning.h>

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>

#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Trains and nothing else.
struct TrainsOnly : LevinModule {
  nn::Linear& fc = add<nn::Linear>("fc", 6, 3);
  StepOutput training_step(const Batch& b, int) override { return cross_entropy(fc(b[0]), b[1]); }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
  Loaders val_dataloader() override {
    FAIL("this loader must not be used");
    return {};
  }
  Tensor forward(const Tensor& x) override { return fc(x); }
};

struct Validates : TrainsOnly {
  int batches = 0;
  void validation_step(const Batch&, int) override { ++batches; }
};

/// The step is a class further up.
struct Derived : Validates {};

/// LevinModule is not the first of its bases.
struct Tagged {
  virtual ~Tagged() = default;
  virtual int tag() const { return 7; }
};
struct Mixed : Tagged, Validates {};

struct Loops : Callback {
  explicit Loops(std::string& t) : tape(&t) {}
  std::string* tape;
  void on_sanity_check_start(RunContext&) override { *tape += 's'; }
  void on_train_epoch_start(RunContext&) override { *tape += 't'; }
  void on_validation_start(RunContext&) override { *tape += 'v'; }
  void on_test_start(RunContext&) override { *tape += 'T'; }
  void on_predict_start(RunContext&) override { *tape += 'p'; }
};

LoaderPtr points(std::int64_t n, std::int64_t batch = 4) {
  return std::make_shared<data::DataLoader>(toy_points(n), data::DataLoaderOptions{.batch_size = batch});
}

std::string loops_of(LevinModule& model) {
  std::string tape;
  auto config = quiet({.max_epochs = 2});
  config.callbacks = {Loops(tape)};
  Trainer(config).fit(model, DataModule{.train = points(8), .val = points(8), .test = points(8)});
  return tape;
}

/// Returns f's standard output.
template <class F>
std::string output_of(const F& f) {
  const TempDir folder;
  const auto file = folder.path / "output.txt";
  std::fflush(stdout);
  const int before = dup(1);
  REQUIRE(std::freopen(file.c_str(), "w", stdout) != nullptr);
  f();
  std::fflush(stdout);
  dup2(before, 1);
  close(before);
  std::ifstream in(file);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

}  // namespace

TEST_CASE("module/only_overridden_loops_run") {
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  TrainsOnly trains;
  CHECK(loops_of(trains) == "tt");
  set_warning_handler(former);
  CHECK(said == std::vector<std::string>{"[fit] TrainsOnly has no validation_step: its loaders are ignored."});
  Validates validates;
  CHECK(loops_of(validates) == "svtvtv");
  CHECK(validates.batches == 2 + 2 * 2);
  Derived derived;
  CHECK(loops_of(derived) == "svtvtv");
  Mixed mixed;
  CHECK(loops_of(mixed) == "svtvtv");
  CHECK(mixed.batches == 6);

  // A run of a step alone needs that step; a prediction without predict_step is the module's forward.
  std::string tape;
  auto config = quiet();
  config.callbacks = {Loops(tape)};
  Trainer trainer(config);
  CHECK(message_of<UsageError>([&] { trainer.validate(trains, {.val = points(8)}); }) ==
        "[validate] TrainsOnly has no validation_step. Write one.");
  CHECK(message_of<UsageError>([&] { trainer.test(validates, {.test = points(8)}); }) ==
        "[test] Validates has no test_step. Write one.");
  CHECK(tape.empty());
  CHECK(trainer.predict(trains, {.predict = points(8)})[0].size() == 2);
  CHECK(tape == "p");
}

TEST_CASE("trainer/effective_batch_logged") {
  const auto said = [](std::int64_t accumulated, const LoaderPtr& loader) {
    return output_of([&] {
      ToyModule model;
      auto config = quiet({.max_epochs = 1, .accumulate_grad_batches = accumulated});
      config.enable_model_summary = true;
      Trainer(config).fit(model, DataModule{.train = loader});
    });
  };
  const std::string text = said(3, points(24, 8));
  CHECK_MESSAGE(contains(text, "effective batch 24 = 8 x 3 accumulated\n"), text);
  CHECK_FALSE(contains(said(1, points(24, 8)), "effective batch"));
}

TEST_CASE("log_dict logs each entry") {
  struct Logs : ToyModule {
    bool dict = false;
    StepOutput training_step(const Batch& b, int i) override {
      const Tensor first = b[0].mean(), second = b[0].max();
      if (dict)
        log_dict({{"mean", first}, {"max", second}}, {.prog_bar = true, .on_epoch = true});
      else {
        log("mean", first, {.prog_bar = true, .on_epoch = true});
        log("max", second, {.prog_bar = true, .on_epoch = true});
      }
      return ToyModule::training_step(b, i);
    }
  };
  const auto known = [](bool dict) {
    manual_seed(1);
    Logs model;
    model.dict = dict;
    Trainer trainer(quiet({.max_epochs = 1}));
    trainer.fit(model, DataModule{.train = points(12)});
    std::vector<std::pair<std::string, std::optional<double>>> all;
    for (const auto& name : trainer.metrics().names()) all.emplace_back(name, trainer.metrics().find(name));
    CHECK(trainer.metrics().find("max_epoch").has_value());
    CHECK(trainer.metrics().progress_bar_values().size() >= 3);
    return all;
  };
  CHECK(known(true) == known(false));
}

TEST_CASE("module: log(x) in a step is the logarithm, and log(name, value) records") {
  struct Logs : TrainsOnly {
    StepOutput training_step(const Batch& b, int) override {
      const Tensor p = softmax(fc(b[0]), 1);
      const Tensor entropy = -(p * log(p)).sum({1}).mean() / log(2);
      log("entropy", entropy);
      log("bits", log(8.0) / log(2.f));
      return entropy;
    }
  };
  manual_seed(1);
  Logs model;
  const Tensor x = toy_points(4).tensors()[0];
  const auto gradient = [&](const Tensor& loss) {
    model.zero_grad();
    loss.backward();
    return model.fc.weight.grad().clone();
  };
  const Tensor p = softmax(model.fc(x), 1);
  const Tensor expected = gradient(-(p * levin::log(p)).sum({1}).mean() / std::log(2.0));
  Batch batch;
  batch.tensors = {x};
  CHECK(gradient(model.training_step(batch, 0).loss()).to_vector<float>() == expected.to_vector<float>());
  Trainer trainer(quiet({.max_epochs = 1}));
  trainer.fit(model, DataModule{.train = points(4)});
  CHECK(trainer.metrics().find("bits").value() == approx(3.0, {.relative = 1e-12}));
}
