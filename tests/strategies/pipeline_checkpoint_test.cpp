// Checkpoints of --strategy pipeline match those of one process; unsupported modules and options are refused.
#include <levin/trainer/strategies/stages.h>

#include <filesystem>

#include "strategies/pipelines.h"

using namespace levin;
using namespace levin::test;

namespace {

struct CheckpointFit {
  std::string strategy;
  std::int64_t epochs = 2;
  std::string save{}, from{};
  double dropout = 0;
};

/// Counts parameters that have another stage's weights and state here.
struct HeldState : Callback {
  int foreign = 0;
  void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
    const StateDict state = run.optimizers->optimizer().state_dict();
    const Stages* const stages = run.strategy->stages();
    foreign = 0;
    for (const auto& [name, p] : run.module.named_parameters())
      if (stages && !stages->owns(p) && state.contains("state." + name + ".step")) ++foreign;
  }
};

/// Weights after it; every save point is kept in the folder `save`.
std::vector<std::vector<float>> fit(const std::filesystem::path& dir, const CheckpointFit& o) {
  manual_seed(o.from.empty() ? 3 : 999);
  StagedModule model({.use_sgd = false, .schedules = true, .dropout = o.dropout});
  data::DataLoader train(toy_points(48), {.batch_size = 8, .shuffle = true, .seed = o.from.empty() ? 7u : 8u});
  auto config = with_strategy(o.strategy, {.max_epochs = o.epochs, .accumulate_grad_batches = 2});
  if (!o.save.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir / o.save)};
  const auto held = std::make_shared<HeldState>();
  config.callbacks.push_back(held);
  Trainer(config).fit(model, DataModule{.train = borrowed(train)}, o.from.empty() ? "" : (dir / o.from).string());
  if (o.strategy == "pipeline") CHECK(held->foreign == 0);
  return values_of(model);
}

}  // namespace

TEST_CASE("strategy pipeline: a resumed fit has the bits of an uninterrupted one, also within a window, with dropout") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto whole = fit(dir.path, {.strategy = "pipeline", .save = "cut", .dropout = 0.3});
    for (const int i : {0, 1, 5, 6, 9})
      CHECK(fit(dir.path, {.strategy = "pipeline", .from = "cut/" + std::to_string(i), .dropout = 0.3}) == whole);
  });
}

TEST_CASE("strategy pipeline: a fit saved anywhere on 2 ranks resumes on 1, on 3, and under other strategies") {
  const CommonDir dir;
  in_turn({{2,
            [&] {
              fit(dir.path, {.strategy = "pipeline", .save = "two"});
              if (rank() != 0) return;
              fit(dir.path, {.strategy = "single", .save = "one"});
              for (const char* i : {"2", "7"}) {
                const Checkpoint one = read_checkpoint(dir.path / "one" / i);
                const Checkpoint two = read_checkpoint(dir.path / "two" / i);
                const auto names = [](const StateDict& state) {
                  std::vector<std::string> list;
                  for (const auto& [name, t] : state) list.push_back(name);
                  return list;
                };
                CHECK(names(one.model) == names(two.model));
                CHECK(names(one.tensors) == names(two.tensors));
                for (const auto& [name, t] : one.tensors)
                  CHECK(largest_difference(t, two.tensors.at(name)) <= 1e-5);
                CHECK(one.values.values().size() == two.values.values().size());
              }
            }},
           {3, [&] {
              const auto whole = fit(dir.path, {.strategy = "single", .epochs = 3});
              for (const char* from : {"two/2", "two/6", "one/2", "one/6"}) {
                CAPTURE(from);
                for (const char* to : {"pipeline", "single"})
                  CHECK(largest_difference(fit(dir.path, {.strategy = to, .epochs = 3, .from = from}), whole) <= 1e-5);
              }
            }}});
}

TEST_CASE("strategy pipeline: a step that throws ends all ranks with its message") {
  struct Throws : StagedModule {
    StepOutput training_step(const Batch& b, int index) override {
      const StepOutput out = StagedModule::training_step(b, index);
      if (index == 1) throw ValueError("a bad batch");
      return out;
    }
  };
  const auto result = on_processes(3, [] {
    Throws model;
    data::DataLoader train(toy_points(48), {.batch_size = 8});
    Trainer trainer(with_strategy("pipeline", {.max_epochs = 1}));
    const auto text = message_of<std::exception>([&] { trainer.fit(model, train); });
    CHECK(contains(text, "a bad batch"));
    CHECK(trainer.global_step() == 1);
  });
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}

namespace {

std::string refused(LevinModule& model, TrainerConfig config = {}) {
  data::DataLoader train(toy_points(16), {.batch_size = 8});
  config.max_epochs = 1;
  // The other ranks report the exception of the one that threw.
  return message_of<std::exception>([&] { Trainer(with_strategy("pipeline", config)).fit(model, train); });
}

}  // namespace

TEST_CASE("strategy pipeline: modules that cannot be partitioned are refused") {
  struct InFront : StagedModule {
    nn::Linear& front = add<nn::Linear>("front", 6, 6);
    StepOutput training_step(const Batch& b, int) override { return cross_entropy(net(front(b[0])), b[1]); }
  };
  struct Twice : StagedModule {
    StepOutput training_step(const Batch& b, int) override {
      return cross_entropy(net(b[0]) + net(b[0] * 2.0), b[1]);
    }
  };
  struct Elsewhere : StagedModule {
    nn::Linear& other = add<nn::Linear>("other", 6, 3);
    StepOutput training_step(const Batch& b, int) override { return cross_entropy(other(b[0]), b[1]); }
  };
  struct Manual : StagedModule {
    Manual() { automatic_optimization = false; }
  };
  struct Tied : LevinModule {
    nn::Sequential& net = add<nn::Sequential>("net", nn::Sequential(nn::Linear(6, 6), nn::Tanh(), nn::Linear(6, 3)));
    Tensor again = register_parameter("again", net[0].named_parameters()[0].second);
    StepOutput training_step(const Batch& b, int) override { return cross_entropy(net(b[0]), b[1]); }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.3}); }
  };
  const auto refuses = [](auto make, const std::string& words) {
    return std::pair<int, std::function<void()>>(2, [make, words] {
      auto model = make();
      const std::string text = refused(*model);
      CAPTURE(text);
      CHECK(contains(text, words));
    });
  };
  in_turn({refuses([] { return std::make_unique<InFront>(); }, "the input of \"net\" requires a gradient"),
           refuses([] { return std::make_unique<Twice>(); }, "calls \"net\" more than once"),
           refuses([] { return std::make_unique<Elsewhere>(); }, "does not call \"net\""),
           refuses([] { return std::make_unique<Manual>(); }, "has its own order of forward and backward"),
           refuses([] { return std::make_unique<Tied>(); }, "\"again\" is used in several stages"),
           refuses([] { return std::make_unique<ToyModule>(); }, "ToyModule has no child that is a Sequential")});
}

TEST_CASE("strategy pipeline: invalid options and calls are refused") {
  const auto message = [](TrainerConfig c) {
    return message_of<UsageError>([&] { Trainer trainer(with_strategy("pipeline", c)); });
  };
  const std::string zero = message({.pipeline = {.micro_batches = 0}});
  const std::string word = message({.pipeline = {.balance = "2,x"}});
  CHECK(contains(zero, "--pipeline-micro-batches 0: give 1 to 1024."));
  CHECK(contains(word, "--pipeline-balance 2,x: give the number of layers of each stage, such as 2,2."));
  CHECK(contains(message({.sync_batchnorm = true}), "--sync-batchnorm: under --strategy pipeline one rank has"));
  const auto refuses = [](int n, const TrainerConfig& config, const std::string& words) {
    return std::pair<int, std::function<void()>>(n, [config, words] {
      struct Short : StagedModule {
        nn::Sequential& few = add<nn::Sequential>("few", nn::Sequential(nn::Linear(6, 6), nn::Linear(6, 3)));
        nn::Sequential* pipeline_module() override { return &few; }
      } model;
      const std::string text = refused(model, config);
      CAPTURE(text);
      CHECK(contains(text, words));
    });
  };
  in_turn({refuses(2, {.pipeline = {.balance = "2,2"}}, "one per process, and 2 layers in all. Give 2 numbers"),
           refuses(2, {.pipeline = {.balance = "2"}}, "Give 2 numbers whose sum is 2."),
           refuses(2, {.precision = "16-o2"}, "which --strategy pipeline does not shard"),
           refuses(3, {}, "3 processes need a layer each, and the network has 2. Use --devices 2"),
           {2, [] {
              nn::Linear plain(2, 2);
              Fabric fabric({.accelerator = "cpu", .strategy = "pipeline"});
              CHECK(contains(message_of<UsageError>([&] { fabric.setup_module(plain); }), "Use the Trainer"));
              StagedModule by_hand;
              fabric.setup_module(by_hand);
              CHECK(contains(message_of<UsageError>([&] { by_hand(ones({2, 6})); }), "Call it under no_grad."));
              fabric.barrier();
            }}});
}

TEST_CASE("strategy pipeline: ranks with different batches are detected") {
  pass_on(2, [] {
    StagedModule model;
    data::DataLoader train(toy_points(rank() == 0 ? 16 : 12), {.batch_size = rank() == 0 ? 8 : 6});
    const auto text = message_of<std::exception>(
        [&] { Trainer(with_strategy("pipeline", {.max_epochs = 1})).fit(model, train); });
    CHECK(contains(text, "one rank has a batch of 6 samples and another one of 8"));
  });
}
