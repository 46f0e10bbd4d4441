// A run that is interrupted anywhere and resumed ends with the bits of an uninterrupted one.
#include <levin/trainer/checkpoint/checkpoint.h>

#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// The results of a run, bit for bit.
struct Outcome {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  std::map<std::string, double> validation, training;
  GeneratorState rng;
  std::int64_t steps = 0, epochs = 0, samples = 0;
  StateMap early;
};

struct Setup {
  ToyOptions toy{};
  std::int64_t accumulate = 1;
  BatchLimit val_check_interval = 1.0;
  std::int64_t epochs = 2;
  int workers = 0;
  /// Seeds of the loaders: "given", or "drawn" from the default generator, also by a "sampler".
  std::string seeds = "given";
  std::string precision = "32-true";
};

Outcome run(const Setup& s, const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt = {}) {
  manual_seed(ckpt.empty() ? 3 : 999);  // the checkpoint overrides the seed
  ToyModule model(s.toy);
  data::DataLoaderOptions ordered{.batch_size = 4, .shuffle = s.seeds != "sampler", .num_workers = s.workers};
  if (s.seeds == "sampler") ordered.sampler = std::make_shared<data::RandomSampler>(23);
  if (s.seeds == "given") ordered.seed = ckpt.empty() ? 7u : 8u;
  data::DataLoader train(toy_points(23), ordered);
  data::DataLoader val(toy_points(10, 9), {.batch_size = 4, .shuffle = s.seeds != "given"});
  auto config = quiet({.max_epochs = s.epochs,
                       .val_check_interval = s.val_check_interval,
                       .accumulate_grad_batches = s.accumulate,
                       .gradient_clip_val = 1.0,
                       .precision = s.precision});
  const auto early = std::make_shared<EarlyStopping>(EarlyStoppingOptions{.monitor = "val_loss", .patience = 100});
  config.callbacks = {early};
  if (policy) config.callbacks.push_back(policy);
  Trainer trainer(config);
  trainer.fit(model, train, val, ckpt);
  return {values_of(model),
          model.losses,
          trainer.metrics().results(Split::validation),
          trainer.metrics().results(Split::train),
          default_generator().state(),
          trainer.global_step(),
          trainer.current_epoch(),
          trainer.state().samples,
          early->state()};
}

void check_resumes_everywhere(const Setup& s, std::size_t expected_points) {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  const Outcome whole = run(s, policy);
  CHECK(policy->points.size() == expected_points);
  const Outcome plain = run(s, nullptr);
  CHECK_MESSAGE(plain.weights == whole.weights, "saving changes nothing");
  for (int i = 0; i < policy->count; ++i) {
    INFO("save point ", i, ", kind ", static_cast<int>(policy->points[static_cast<std::size_t>(i)]));
    const Outcome again = run(s, nullptr, (folder.path / std::to_string(i)).string());
    REQUIRE(again.losses.size() <= whole.losses.size());
    const std::vector<double> tail(whole.losses.end() - std::ssize(again.losses), whole.losses.end());
    CHECK(again.losses == tail);
    CHECK(again.weights == whole.weights);
    CHECK(again.validation == whole.validation);
    CHECK(again.training == whole.training);
    CHECK(again.rng == whole.rng);
    CHECK(again.steps == whole.steps);
    CHECK(again.samples == whole.samples);
    CHECK(again.epochs == whole.epochs);
    CHECK(again.early == whole.early);
  }
  // The points differ: a test that resumes only at the end would prove nothing.
  CHECK(run(s, nullptr, (folder.path / "0").string()).losses.size() == whole.losses.size() - 1);
}

}  // namespace

TEST_CASE("resume is bit-equal at every one of 12 steps: dropout, shuffle, Adam, a scheduler, a ragged tail") {
  check_resumes_everywhere({}, 12 + 2 + 2);  // batches, validations, epochs
}

TEST_CASE("resume with loss scaling") { check_resumes_everywhere({.precision = "16-mixed"}, 12 + 2 + 2); }

TEST_CASE("resume with seeds that were drawn, of loaders and of samplers") {
  check_resumes_everywhere({.seeds = "drawn"}, 12 + 2 + 2);
  check_resumes_everywhere({.accumulate = 3, .val_check_interval = 3, .workers = 2, .seeds = "sampler"}, 12 + 4 + 2);
}

TEST_CASE("resume with master weights, inside of accumulation windows") {
  check_resumes_everywhere({.accumulate = 2, .precision = "16-o2"}, 12 + 2 + 2);
}

TEST_CASE("resume inside of accumulation windows of 3, with validation twice an epoch and momentum") {
  check_resumes_everywhere({.toy = {.use_sgd = true}, .accumulate = 3, .val_check_interval = 3}, 12 + 4 + 2);
}

TEST_CASE("resume with a scheduler by the epoch and loading threads") {
  check_resumes_everywhere({.toy = {.interval = Interval::epoch}, .accumulate = 4, .workers = 2}, 12 + 2 + 2);
}

TEST_CASE("a run that max_steps ended goes on in the middle of its epoch") {
  const auto run_to = [](std::int64_t steps, const std::filesystem::path& dir, const std::string& ckpt) {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 7});
    auto config = quiet({.max_steps = steps});
    config.callbacks = {ModelCheckpoint({.dirpath = dir})};
    Trainer trainer(config);
    trainer.fit(model, DataModule{.train = std::shared_ptr<data::DataLoader>(std::shared_ptr<void>(), &train)}, ckpt);
    CHECK(trainer.global_step() == steps);
    return std::pair(values_of(model), model.losses.size());
  };
  const TempDir a, b;
  const auto whole = run_to(10, a.path, "");
  run_to(4, b.path, "");
  const auto second = run_to(10, b.path, (b.path / "last").string());
  CHECK(second.second == 6);
  CHECK(second.first == whole.first);
}

TEST_CASE("a finished run has nothing left to do") {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  const Outcome whole = run({}, policy);
  const Outcome again = run({}, nullptr, (folder.path / std::to_string(policy->count - 1)).string());
  CHECK(again.losses.empty());
  CHECK(again.weights == whole.weights);
}

TEST_CASE("resume from a checkpoint made between two epochs goes on with the next one's order of batches") {
  struct Stop : Callback {
    void on_train_epoch_start(RunContext& run) override {
      if (run.state.epoch == 1) throw std::runtime_error("between");
    }
  };
  const TempDir folder;
  const auto fit = [&](bool stops, const std::string& path) {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(23), {.batch_size = 4, .shuffle = true, .seed = 5}),
        val(toy_points(10), {.batch_size = 4});
    auto config = quiet({.max_epochs = 3});
    config.callbacks = {OnExceptionCheckpoint(folder.path)};
    if (stops) config.callbacks.push_back(Stop());
    Trainer(config).fit(model, train, val, path);
    return values_of(model);
  };
  const auto whole = fit(false, {});
  CHECK_THROWS_WITH(fit(true, {}), "between");
  CHECK(fit(false, (folder.path / "on_exception").string()) == whole);
}

TEST_CASE("a checkpoint that does not fit is refused with one sentence, and nothing is trained") {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  run({}, policy);
  const std::string ckpt = (folder.path / "3").string();
  const auto fit = [&](LevinModule& model, std::int64_t batch_size, const std::string& precision,
                       const std::string& path) {
    data::DataLoader train(toy_points(23), {.batch_size = batch_size, .shuffle = true}),
        val(toy_points(10), {.batch_size = 4});
    Trainer(quiet({.max_epochs = 2, .precision = precision})).fit(model, train, val, path);
  };
  struct Wider : ToyModule {
    nn::Linear& fc3 = add<nn::Linear>("fc3", 3, 3);
  } wider;
  const auto other = message_of<StateError>([&] { fit(wider, 4, "32-true", ckpt); });
  CHECK_MESSAGE(contains(other, "belongs to another network"), other);
  CHECK_MESSAGE(contains(other, "fc3.weight"), other);
  CHECK(contains(other, ckpt));
  CHECK(wider.losses.empty());

  ToyModule model;
  CHECK(contains(message_of<StateError>([&] { fit(model, 5, "32-true", ckpt); }), "does not fit this run"));
  CHECK(contains(message_of<StateError>([&] { fit(model, 4, "64-true", ckpt); }), "precision"));
  const std::string none = (folder.path / "none").string();
  CHECK(contains(message_of<IoError>([&] { fit(model, 4, "32-true", none); }), "is not a folder"));
  CHECK(contains(message_of<IoError>([&] { fit(model, 4, "32-true", "best"); }), "no checkpoint \"best\""));
  CHECK(model.losses.empty());
}

TEST_CASE("a fit that resumes from the last checkpoint starts anew if there is none yet") {
  const TempDir folder;
  TrainerConfig config;
  config.max_epochs = 1;
  config.default_root_dir = folder.path.string();
  config.enable_progress_bar = false;
  config.resume = "last";
  data::DataLoader train(toy_points(8), {.batch_size = 2});
  ToyModule first, second, evaluated;
  Trainer(config).fit(first, train);
  CHECK(first.losses.size() == 4);
  config.max_epochs = 2;
  Trainer(config).fit(second, train);  // by the same command: goes on
  CHECK(second.losses.size() == 4);
  config.default_root_dir = (folder.path / "other").string();
  const DataModule val{.val = borrowed(train)};
  CHECK(contains(message_of<IoError>([&] { Trainer(config).validate(evaluated, val); }), "no checkpoint \"last\""));
}
