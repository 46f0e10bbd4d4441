// Fields of TrainerConfig whose effect no other file tests.
#include "support/comparison.h"
#include "trainer/toy.h"

#include <levin/autograd/modes.h>

#include <algorithm>
#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

LoaderPtr points(std::int64_t n) {
  return std::make_shared<data::DataLoader>(toy_points(n), data::DataLoaderOptions{.batch_size = 4});
}

/// Records all calls.
struct Sink : Logger {
  Hyperparameters hyperparameters;
  std::vector<std::string> operations;
  int tables = 0;
  void log_metrics(const LogRecord&) override {}
  void log_hyperparams(const Hyperparameters& h) override { hyperparameters = h; }
  void log_model(const nn::Module&) override { ++tables; }
  void log_graph(const ModelGraph& graph) override {
    for (const auto& node : graph.nodes) operations.push_back(node.op);
  }
  void resume(std::int64_t) override {}
  void save() override {}
  std::string log_dir() const override { return {}; }
};

}  // namespace

TEST_CASE("flags of int, float, bool and enumerations") {
  enum class Mode { slow, fast };
  int count = 3;
  float rate = 0.5F;
  bool shuffle = false;
  Mode mode = Mode::slow;
  const auto parse = [&](std::vector<const char*> words) {
    words.insert(words.begin(), "program");
    CommandLine line("A program.");
    line.add("count", count, "Count", 1).add("rate", rate, "Rate").add("shuffle", shuffle, "Shuffle");
    line.add("mode", mode, {{"slow", Mode::slow}, {"fast", Mode::fast}}, "Mode");
    line.parse(static_cast<int>(words.size()), words.data());
    return line.config_text();
  };
  CHECK(contains(parse({}), "mode = \"slow\""));
  CHECK(contains(parse({"--count", "7", "--rate", "0.25", "--shuffle", "--mode", "fast"}), "mode = \"fast\""));
  CHECK(count == 7);
  CHECK(rate == 0.25F);
  CHECK(shuffle);
  CHECK(mode == Mode::fast);
  CHECK_THROWS_WITH_AS(parse({"--mode", "quick"}), "--mode quick: choose one of slow|fast.", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--count", "3000000000"}),
                       "--count 3000000000: give a whole number of 2147483647 or less.", UsageError);
  CHECK_THROWS_WITH_AS(parse({"--count", "0"}), "--count 0: give a whole number of 1 or more.", UsageError);
}

TEST_CASE("StateMap converts numbers to the type asked for") {
  const StateMap map{{"hidden", 64}, {"lr", 0.5}, {"large", std::int64_t{1} << 40}};
  CHECK(map.get<int>("hidden") == 64);
  CHECK(map.get<float>("lr") == 0.5F);
  CHECK(map.get<std::int64_t>("large") == std::int64_t{1} << 40);
  CHECK_THROWS_AS(map.get<int>("large"), StateError);
  CHECK_THROWS_AS(map.get<double>("hidden"), StateError);
  CHECK_THROWS_AS(map.get<int>("lr"), StateError);
}

TEST_CASE("flags/inference_mode: evaluation runs under it, or under no_grad; training records") {
  struct Watching : ToyModule {
    bool inference = false, recorded = true;
    StepOutput training_step(const Batch& b, int i) override {
      CHECK_FALSE(inference_enabled());
      return ToyModule::training_step(b, i);
    }
    void validation_step(const Batch& b, int) override {
      inference = inference_enabled();
      recorded = (*this)(b[0]).requires_grad();
    }
  };
  for (const bool on : {true, false}) {
    Watching model;
    Trainer(quiet({.max_epochs = 1, .inference_mode = on})).fit(model, {.train = points(8), .val = points(4)});
    CHECK(model.inference == on);
    CHECK_FALSE(model.recorded);
  }
}

TEST_CASE("flags/detect_anomaly: the operation that first made a NaN is named") {
  struct Broken : ToyModule {
    StepOutput training_step(const Batch& b, int) override {
      const Tensor x = (*this)(b[0]);
      return sqrt(x - x).sum() * 0.0;  // the gradient of sqrt at 0 is infinite, and times 0 it is NaN
    }
  };
  const auto fit = [](bool detect) {
    Broken model;
    Trainer(quiet({.max_epochs = 1, .detect_anomaly = detect})).fit(model, {.train = points(4)});
  };
  const std::string text = message_of<GradError>([&] { fit(true); });
  CHECK_MESSAGE(contains(text, "sqrt"), text);
  CHECK_FALSE(anomaly_enabled());
  CHECK_NOTHROW(fit(false));
}

TEST_CASE("flags/gradient_clip_algorithm: norm scales all gradients, value cuts each off") {
  struct Clipped : ToyModule {
    double norm = 0, largest = 0;  // of the last step
    StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]) * 100.0; }
    void optimizer_step(optim::Optimizer& optimizer, const Tensor& found_inf) override {
      double squares = 0;
      Largest most;
      for (const auto& p : parameters()) {
        squares += square(p.grad()).sum().item<double>();
        most.add(abs(p.grad()).max().item<double>());
      }
      norm = std::sqrt(squares);
      largest = most.value();
      ToyModule::optimizer_step(optimizer, found_inf);
    }
  };
  const auto clipped = [](std::optional<double> value, const char* algorithm) {
    manual_seed(4);
    Clipped model;
    Trainer(quiet({.max_epochs = 1, .gradient_clip_val = value, .gradient_clip_algorithm = algorithm}))
        .fit(model, {.train = points(4)});
    return std::pair(model.norm, model.largest);
  };
  const auto [norm, largest] = clipped(std::nullopt, "norm");
  CHECK(norm > 5);
  CHECK(clipped(0.5, "norm").first == approx(0.5, {.relative = 1e-5}));
  CHECK(clipped(0.5, "norm").second == approx(0.5 * largest / norm, {.relative = 1e-5}));
  CHECK(clipped(0.5, "value").second == 0.5);
  CHECK(clipped(0.5, "value").first > 0.5);
}

TEST_CASE("flags/enable_autolog_hparams: loggers get the hyper-parameters, the table and the graph when a fit begins") {
  struct Named : ToyModule {
    Named() {
      StateMap values;
      values.set("width", std::int64_t{12});
      save_hyperparameters(values);
    }
  };
  for (const bool on : {true, false}) {
    const auto sink = std::make_shared<Sink>();
    Named model;
    auto config = quiet({.max_epochs = 1, .enable_autolog_hparams = on});
    config.loggers = {sink};
    Trainer(config).fit(model, {.train = points(8)});
    CHECK(sink->hyperparameters.size() == (on ? 1 : 0));
    if (on) CHECK(to_string(sink->hyperparameters.at(0).second) == "12");
    CHECK(sink->tables == 1);
    CHECK(std::ranges::find(sink->operations, "relu") != sink->operations.end());
  }
}

TEST_CASE("flags/enable_checkpointing, logger: a fit leaves a checkpoint and a table of metrics, or nothing") {
  for (const bool on : {true, false}) {
    const TempDir folder;
    ToyModule model;
    Trainer trainer({.max_epochs = 1,
                     .default_root_dir = folder.path,
                     .enable_checkpointing = on,
                     .enable_progress_bar = false,
                     .enable_model_summary = false,
                     .logger = on});
    trainer.fit(model, {.train = points(8)});
    CHECK(std::filesystem::exists(folder.path / "metrics.csv") == on);
    CHECK(std::filesystem::exists(folder.path / "checkpoints/last") == on);
    CHECK(std::filesystem::is_empty(folder.path) != on);
    CHECK(trainer.checkpoint_path("last").empty() != on);
  }
}

TEST_CASE("flags/seed: the generator of weights, shuffling and dropout; Trainer's properties in and after a run") {
  const auto losses = [](std::int64_t seed) {
    Trainer trainer(quiet({.max_epochs = 1, .seed = seed}));
    struct Look : Callback {
      Trainer* trainer = nullptr;
      void on_train_batch_start(RunContext&, const Batch&, int index) override {
        CHECK(trainer->num_training_batches() == 2);
        CHECK(trainer->is_last_batch() == (index == 1));
        CHECK(trainer->status() == RunStatus::interrupted);
        CHECK_FALSE(trainer->should_stop());
      }
    };
    const auto look = std::make_shared<Look>();
    look->trainer = &trainer;
    struct WithLook : ToyModule {
      std::shared_ptr<Look> look;
      std::vector<CallbackPtr> configure_callbacks() override { return {look}; }
    } watched;
    watched.look = look;
    trainer.fit(watched, {.train = std::make_shared<data::DataLoader>(
                              toy_points(8), data::DataLoaderOptions{.batch_size = 4, .shuffle = true})});
    CHECK(trainer.current_epoch() == 1);
    CHECK(trainer.global_step() == 2);
    CHECK(trainer.status() == RunStatus::success);
    CHECK(trainer.metrics().find("train_loss_epoch").has_value());
    return watched.losses;
  };
  CHECK(losses(3) == losses(3));
  CHECK(losses(3) != losses(4));
}
