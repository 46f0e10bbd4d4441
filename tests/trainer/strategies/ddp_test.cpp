// The Trainer on several processes. A test case starts itself again once per rank, where its body runs.
#include <csignal>

#include "support/comparison.h"
#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

TrainerConfig ddp(TrainerConfig c = {}) {
  c.strategy = "ddp";
  c.accelerator = "cpu";
  c.timeout = 60;
  return quiet(c);
}

struct Setup {
  TrainerConfig config{};
  std::int64_t whole = 12;  ///< samples of all ranks in one step
  double dropout = 0;
  std::int64_t n = 48;
};

/// Weights after a fit on all ranks, or on one with the whole batch.
std::vector<std::vector<float>> trained(const Setup& s, bool alone) {
  manual_seed(3);
  ToyModule model({.dropout = s.dropout, .use_sgd = true});
  data::DataLoader train(toy_points(s.n),
                         {.batch_size = alone ? s.whole : s.whole / ranks(), .shuffle = true, .seed = 7});
  Trainer trainer(alone ? quiet(s.config) : ddp(s.config));
  trainer.fit(model, train);
  return values_of(model);
}

void equals_one_rank(const Setup& s) {
  const auto alone = trained(s, true), together = trained(s, false);
  CHECK(largest_difference(alone, together) <= 1e-6);
  CHECK(differs(alone, values_of(ToyModule()), 1e-3));  // training has changed the weights
}

/// Does something at one batch on one rank.
struct At : Callback {
  int on_rank;
  std::int64_t step;
  std::function<void(RunContext&)> act;
  At(int r, std::int64_t s, std::function<void(RunContext&)> f) : on_rank(r), step(s), act(std::move(f)) {}
  void on_train_batch_start(RunContext& run, const Batch&, int) override {
    if (run.strategy->rank() == on_rank && run.state.global_step == step) act(run);
  }
};

}  // namespace

TEST_CASE("ddp/equals_big_batch: two ranks") {
  pass_on(2, [] {
    equals_one_rank({.config = {.max_epochs = 3}});
    equals_one_rank({.config = {.max_epochs = 3, .accumulate_grad_batches = 3, .gradient_clip_val = 0.05}});
  });
}

TEST_CASE("ddp/equals_big_batch: three ranks, steps that the data do not fill") {
  pass_on(3, [] {
    equals_one_rank({.config = {.max_epochs = 3, .gradient_clip_val = 0.1, .gradient_clip_algorithm = "value"}});
    equals_one_rank({.config = {.max_epochs = 2, .accumulate_grad_batches = 2}, .n = 54});  // the last batch is half
  });
}

TEST_CASE("ddp: losses of other weights on each rank make the weighted mean of all") {
  pass_on(2, [] {
    struct Weighted : ToyModule {
      using ToyModule::ToyModule;
      StepOutput training_step(const Batch& b, int) override {
        const Tensor kept = 1.0 - b[1].eq(0).to(kFloat32);  // some samples count
        const Tensor each = cross_entropy((*this)(b[0]), b[1], {.reduction = Reduction::none});
        const double count = kept.sum().item<double>();
        return StepOutput((each * kept).sum() / count).weight(count);
      }
    };
    const auto run = [](bool alone) {
      manual_seed(3);
      Weighted model({.dropout = 0, .use_sgd = true});
      data::DataLoader train(toy_points(48), {.batch_size = alone ? 24 : 12, .shuffle = true, .seed = 7});
      Trainer(alone ? quiet({.max_epochs = 3}) : ddp({.max_epochs = 3})).fit(model, train);
      return values_of(model);
    };
    CHECK(largest_difference(run(true), run(false)) <= 1e-6);
  });
}

TEST_CASE("ddp/replicas_bit_equal: after 50 steps, with dropout of each rank's own") {
  pass_on(3, [] {
    manual_seed(3);
    ToyModule model;
    if (rank() > 0) model.fc1.weight.detach().zero_();  // rank 0's values are broadcast
    data::DataLoader train(toy_points(60), {.batch_size = 2, .shuffle = true, .seed = 7});
    Trainer trainer(ddp({.max_epochs = -1, .max_steps = 50}));
    trainer.fit(model, train);
    CHECK(trainer.global_step() == 50);
    CHECK(trainer.world_size() == 3);
    CHECK(trainer.global_rank() == rank());
    CHECK(same_on_all(trainer.fabric().strategy(), values_of(model)));
    const Tensor noise = dropout(ones({64}), 0.5);
    CHECK_FALSE(same_on_all(trainer.fabric().strategy(), {noise.to_vector<float>()}));
  });
}

TEST_CASE("ddp: manual optimization and Fabric average accumulated gradients") {
  pass_on(2, [] {
    struct ByHand : ToyModule {
      explicit ByHand(ToyOptions o) : ToyModule(o) { automatic_optimization = false; }
      StepOutput training_step(const Batch& b, int index) override {
        auto [opt] = optimizers<1>();
        const Tensor loss = cross_entropy((*this)(b[0]), b[1]) / 2.0;
        manual_backward(loss);
        if (index % 2 == 1) {
          opt.step();
          opt.zero_grad();
        }
        return loss;
      }
    };
    const auto by_hand = [](bool alone) {
      manual_seed(3);
      ByHand model({.dropout = 0, .use_sgd = true});
      data::DataLoader train(toy_points(48), {.batch_size = alone ? 12 : 6, .shuffle = true, .seed = 7});
      Trainer(alone ? quiet({.max_epochs = 2}) : ddp({.max_epochs = 2})).fit(model, train);
      return values_of(model);
    };
    CHECK(largest_difference(by_hand(true), by_hand(false)) <= 1e-6);

    const auto with_fabric = [](bool alone) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader train(toy_points(48), {.batch_size = alone ? 12 : 6, .shuffle = true, .seed = 7});
      Fabric fabric({.accelerator = "cpu", .strategy = alone ? "single" : "ddp"});
      fabric.launch();
      auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
      auto loader = fabric.setup_dataloaders(train);
      for (int epoch = 0; epoch < 2; ++epoch)
        for (const Batch& b : loader) {
          opt.zero_grad();
          fabric.backward(cross_entropy(model(b[0]), b[1]));
          opt.step();
        }
      return values_of(model);
    };
    CHECK(largest_difference(with_fabric(true), with_fabric(false)) <= 1e-6);
  });
}

TEST_CASE("ddp: evaluation counts every sample once, in logged values and in metrics") {
  pass_on(3, [] {
    struct Measured : ToyModule {
      metrics::Accuracy& exact = add_metric<metrics::Accuracy>("exact", metrics::StatScoresOptions{.num_classes = 3});
      int batches = 0;
      void validation_step(const Batch& b, int) override {
        const Tensor logits = (*this)(b[0]);
        log("val_loss", cross_entropy(logits, b[1]), {.sync_dist = true});
        exact.update(logits, b[1]);
        log("val_exact", exact);
        ++batches;
      }
    };
    const auto measure = [](bool alone, std::int64_t n) {
      manual_seed(3);
      Measured model;
      const auto val = std::make_shared<data::DataLoader>(toy_points(n, 9), data::DataLoaderOptions{.batch_size = 2});
      Trainer trainer(alone ? quiet() : ddp());
      trainer.validate(model, DataModule{.val = val});
      auto values = trainer.validate(model, DataModule{.val = val})[0];  // by now all ranks know what there is
      values["batches"] = model.batches / 2;
      return values;
    };
    for (const std::int64_t n : {18, 13, 7, 2, 1}) {  // of the last two some ranks get none
      const auto alone = measure(true, n), together = measure(false, n);
      CHECK(together.at("val_loss") == approx(alone.at("val_loss"), {.relative = 1e-6}));
      CHECK(together.at("val_exact") == alone.at("val_exact"));
      const std::int64_t own = (n + 2 - rank()) / 3;
      CHECK(together.at("batches") == (own + 1) / 2);
    }
  });
}

TEST_CASE("ddp: of several loaders some leave a rank without a batch, and all values are those of one process") {
  pass_on(3, [] {
    struct Measured : ToyModule {
      metrics::Accuracy& first = add_metric<metrics::Accuracy>("first", metrics::StatScoresOptions{.num_classes = 3});
      metrics::Accuracy& last = add_metric<metrics::Accuracy>("last", metrics::StatScoresOptions{.num_classes = 3});
      void validation_step(const Batch& b, int) override {
        const Tensor logits = (*this)(b[0]);
        metrics::Accuracy& own = b.dataloader_idx == 0 ? first : last;
        own.update(logits, b[1]);
        log(b.dataloader_idx == 0 ? "first" : "last", own, {.add_dataloader_idx = false});
        log("val_loss", cross_entropy(logits, b[1]), {.sync_dist = true});
        log("largest", b[0].max(), {.reduce = Reduce::max, .sync_dist = true});
        log("samples", static_cast<double>(b.size()), {.reduce = Reduce::sum, .sync_dist = true});
      }
    };
    const auto measure = [](bool alone) {
      manual_seed(3);
      Measured model;
      const auto loader = [](std::int64_t n) {
        return std::make_shared<data::DataLoader>(toy_points(n, 9), data::DataLoaderOptions{.batch_size = 2});
      };
      Trainer trainer(alone ? quiet() : ddp());
      return trainer.validate(model, DataModule{.val = {loader(1), loader(13), loader(2)}});
    };
    const auto alone = measure(true), together = measure(false);
    REQUIRE(alone.size() == 3);
    REQUIRE(together.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(together[k].size() == alone[k].size());
      for (const auto& [name, value] : alone[k]) {
        CAPTURE(name);
        REQUIRE(together[k].contains(name));
        CHECK(together[k].at(name) == approx(value, {.relative = 1e-6}));
      }
    }
  });
}

TEST_CASE("ddp: a resumed fit has the bits of an uninterrupted one, wherever it was interrupted") {
  const CommonDir dir;
  pass_on(2, [&] {
    const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
      manual_seed(ckpt.empty() ? 3 : 999);
      ToyModule model;
      data::DataLoader train(toy_points(23), {.batch_size = 3, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
      data::DataLoader val(toy_points(9, 9), {.batch_size = 4});
      auto config = ddp({.max_epochs = 2, .val_check_interval = 0.5, .accumulate_grad_batches = 3});
      config.callbacks = {EarlyStopping({.monitor = "val_loss", .patience = 100})};
      if (policy) config.callbacks.push_back(policy);
      Trainer trainer(config);
      trainer.fit(model, train, val, ckpt);
      return std::pair(values_of(model), trainer.metrics().results(Split::train));
    };
    const auto policy = std::make_shared<SaveAlways>(dir.path);
    const auto whole = run(policy, {});
    int points = 0;
    while (std::filesystem::exists(dir.path / std::to_string(points))) ++points;
    CHECK(points == 14);  // 8 batches, 4 validations, 2 epochs
    for (int i = 0; i < points; ++i) {
      CAPTURE(i);
      CHECK(run(nullptr, (dir.path / std::to_string(i)).string()) == whole);
    }
  });
}

TEST_CASE("ddp: rank 0 writes, and all ranks know the written files") {
  const CommonDir dir;
  pass_on(2, [&] {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(24), {.batch_size = 4, .seed = 1}), val(toy_points(8), {.batch_size = 4});
    TrainerConfig config = ddp({.max_epochs = 3, .default_root_dir = dir.path});
    config.logger = config.enable_model_summary = config.enable_progress_bar = true;
    // Each rank has a metric of its own: rank zero's decides.
    struct Own : Callback {
      void on_validation_epoch_end(RunContext& run) override {
        run.log("mine", run.strategy->rank() == 0 ? 3.0 - static_cast<double>(run.state.epoch)
                                                  : static_cast<double>(run.state.epoch));
      }
    };
    const auto best = std::make_shared<ModelCheckpoint>(
        ModelCheckpointOptions{.dirpath = dir.path / "ckpt", .monitor = "mine", .save_last = true});
    config.callbacks = {Own(), best};
    Trainer trainer(config);
    trainer.fit(model, train, val);
    CHECK(std::filesystem::path(best->best_model_path()).filename() == "epoch=2-step=9");
    CHECK(std::filesystem::exists(best->best_model_path() + "/state.json"));
    CHECK(trainer.checkpoint_path("last") == best->best_model_path());
    trainer.save_checkpoint(dir.path / "by_hand");
    CHECK(read_checkpoint(dir.path / "by_hand").values.get<std::int64_t>("world_size") == 2);
    const auto test = std::make_shared<data::DataLoader>(toy_points(9), data::DataLoaderOptions{.batch_size = 4});
    trainer.test(model, DataModule{.test = test}, "best");
    CHECK(trainer.ckpt_path() == best->best_model_path());
    if (rank() == 0) CHECK(contains(io::read_text(dir.path / "metrics.csv"), "val_acc"));
  });
}

TEST_CASE("ddp: a checkpoint of an epoch's end goes on with another number of ranks") {
  const CommonDir dir;
  const auto fit = [&](TrainerConfig config, const std::string& ckpt) {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    data::DataLoader train(toy_points(24), {.batch_size = 4, .shuffle = true, .seed = 1});
    config.max_epochs = ckpt.empty() ? 1 : 3;
    if (ckpt.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir.path / "saved")};
    Trainer trainer(config);
    trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt);
    return trainer.global_step();
  };
  pass_on(2, [&] { CHECK(fit(ddp(), {}) == 3); });
  if (distributed::is_launched()) return;
  CHECK(fit(quiet(), (dir.path / "saved" / "3").string()) == 3 + 2 * 6);
  CHECK(contains(message_of<StateError>([&] { fit(quiet(), (dir.path / "saved" / "0").string()); }),
                 "2 ranks saved it within an epoch, and this run has 1"));
}

TEST_CASE("ddp: a checkpoint of one process resumes with different random numbers on each rank") {
  const CommonDir dir;
  const auto fit = [&](TrainerConfig config, const std::string& ckpt) {
    manual_seed(3);
    ToyModule model;
    data::DataLoader train(toy_points(24), {.batch_size = 4, .shuffle = true, .seed = 1});
    config.max_epochs = ckpt.empty() ? 1 : 2;
    if (ckpt.empty()) config.callbacks = {std::make_shared<SaveAlways>(dir.path / "saved")};
    Trainer(config).fit(model, DataModule{.train = borrowed(train)}, ckpt);
  };
  if (!distributed::is_launched()) fit(quiet(), {});
  pass_on(2, [&] {
    fit(ddp(), (dir.path / "saved" / "6").string());
    CHECK((default_generator().state().offset >> 48) == static_cast<std::uint64_t>(rank()));
  });
}

TEST_CASE("ddp: one rank's stop request, or signal, stops all of them after the same step") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto fit = [&](At at) {
      ToyModule model;
      data::DataLoader train(toy_points(60), {.batch_size = 2, .seed = 1});
      auto config = ddp({.max_epochs = 5});
      config.callbacks = {std::move(at), ModelCheckpoint({.dirpath = dir.path})};
      Trainer trainer(config);
      const std::string text = message_of<Interrupted>([&] { trainer.fit(model, train); });
      return std::pair(trainer.global_step(), text);
    };
    const auto stopped = fit(At(2, 4, [](RunContext& run) { run.stop.request("enough"); }));
    CHECK(stopped.first == 5);
    CHECK(stopped.second == "nothing was thrown");
    const auto ended = fit(At(1, 3, [](RunContext&) { std::raise(SIGTERM); }));
    CHECK(ended.first == 4);
    CHECK(contains(ended.second, "interrupted by SIGTERM after step 4. Resume from"));
    CHECK(std::filesystem::exists(dir.path / "last" / "state.json"));
  });
}

TEST_CASE("ddp: a rank that throws says why first, all end, and the last checkpoint is whole") {
  const CommonDir dir;
  const auto result = on_processes(3, [&] {
    ToyModule model;
    data::DataLoader train(toy_points(60), {.batch_size = 2, .seed = 1});
    auto config = ddp({.max_epochs = 5});
    config.callbacks = {ModelCheckpoint({.dirpath = dir.path, .save_last = true, .every_n_train_steps = 1}),
                        At(1, 7, [](RunContext&) { throw ValueError("a bad batch"); })};
    Trainer(config).fit(model, train);
  });
  if (!result) return;
  INFO(result->output);
  for (const int status : result->launch.statuses) CHECK(status != 0);
  CHECK(result->launch.first_failed == 1);
  const auto first = result->output.find("a bad batch"), told = result->output.find("rank 1 failed");
  CHECK(first != std::string::npos);
  REQUIRE(told != std::string::npos);
  CHECK(first < told);
  CHECK(contains(result->output, "rank 1 failed: a bad batch"));
  CHECK(read_checkpoint(dir.path / "last").values.part("loop").get<std::int64_t>("global_step") == 7);
}

TEST_CASE("ddp: a rank that skips a batch is refused by name; a killed one ends the others") {
  const char* kill = std::getenv("LEVIN_TEST_KILL");
  for (const bool killed : {false, true}) {
    if (distributed::is_launched() && killed != (kill != nullptr && std::string(kill) == "1")) continue;
    if (!distributed::is_launched()) setenv("LEVIN_TEST_KILL", killed ? "1" : "0", 1);
    const auto result = on_processes(2, [&] {
      struct Skips : ToyModule {
        StepOutput training_step(const Batch& b, int index) override {
          if (index == 2 && rank() == 1) return {};
          return ToyModule::training_step(b, index);
        }
      };
      Skips skips;
      ToyModule model;
      data::DataLoader train(toy_points(60), {.batch_size = 2, .seed = 1});
      auto config = ddp({.max_epochs = 5});
      if (killed) config.callbacks = {At(1, 3, [](RunContext&) { std::raise(SIGKILL); })};
      Trainer(config).fit(killed ? model : skips, train);
    });
    if (!result) return;
    INFO(result->output);
    CHECK(result->launch.statuses[0] != 0);
    CHECK((killed ? result->launch.statuses[1] == 128 + SIGKILL : result->launch.statuses[1] != 0));
    if (killed)
      CHECK(contains(result->output, "rank 1 is lost"));
    else
      CHECK(contains(result->output, "returned no loss for a batch, or one of weight 0, on rank 1"));
  }
}

TEST_CASE("ddp: batch norm's buffers are rank zero's on all ranks before an evaluation") {
  pass_on(2, [] {
    struct Normed : ToyModule {
      nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 12);
      std::vector<float> seen;
      Tensor forward(const Tensor& x) override { return fc2(norm(fc1(x).reshape({-1, 12, 1, 1})).reshape({-1, 12})); }
      void on_validation_epoch_start() override { seen = norm.running_mean.to_vector<float>(); }
    } model;
    data::DataLoader train(toy_points(24), {.batch_size = 4, .seed = 1}), val(toy_points(8), {.batch_size = 4});
    Trainer trainer(ddp({.max_epochs = 1}));
    trainer.fit(model, train, val);
    CHECK(same_on_all(trainer.fabric().strategy(), {model.seen}));
  });
}

TEST_CASE("ddp: incompatible options are refused before anything starts") {
  const auto refusal = [](TrainerConfig c) { return message_of<UsageError>([&] { Trainer t(quiet(c)); }); };
  CHECK(contains(refusal({.accelerator = "cpu", .devices = 2, .strategy = "single"}),
                 "--devices 2 and --num-nodes 1 are more than one device. Use --strategy ddp."));
  CHECK(contains(refusal({.accelerator = "cpu", .num_nodes = 2, .strategy = "single"}), "Use --strategy ddp"));
  CHECK(contains(refusal({.num_nodes = 2, .node_rank = 2, .strategy = "ddp"}), "--node-rank 2: there are 2 machines"));
  CHECK(contains(refusal({.timeout = 0}), "--timeout 0: give 1 or more."));
  CHECK(contains(refusal({.accelerator = "cpu", .devices = "[0]"}), "the CPU is one device, which has no index"));
}
