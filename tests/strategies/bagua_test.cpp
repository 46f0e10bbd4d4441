// The strategy bagua and its algorithms. A test case starts itself again once per rank.
#include <levin/optim/qadam.h>

#include <filesystem>

#include "strategies/ranks.h"
#include "support/comparison.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Bagua : ToyModule {
  explicit Bagua(bool use_qadam = false, double dropout = 0)
      : ToyModule({.dropout = dropout, .use_sgd = true}), qadam(use_qadam) {}
  bool qadam;
  std::vector<std::vector<float>> trained;                  // this rank's own weights, before the fit is over
  std::vector<std::vector<std::vector<float>>> validated;  // the weights at each validation batch
  void on_train_end() override { trained = values_of(*this); }
  void validation_step(const Batch& b, int i) override {
    validated.push_back(values_of(*this));
    ToyModule::validation_step(b, i);
  }
  Optimizers configure_optimizers() override {
    if (!qadam) return ToyModule::configure_optimizers();
    return Optimizers(optim::QAdam(parameters(), {.lr = 0.02, .warmup_steps = 4}))
        .schedule([](auto& opt) { return optim::StepLR(opt, {.step_size = 3, .gamma = 0.9}); },
                  {.interval = Interval::step});
  }
};

TrainerConfig with(const std::string& algorithm, TrainerConfig c = {}) {
  if (algorithm == "ddp") return with_strategy("ddp", std::move(c));
  c.bagua.algorithm = algorithm;
  c.bagua.sync_interval_ms = 0;
  return with_strategy("bagua", std::move(c));
}

struct Fitted {
  std::vector<std::vector<float>> weights;
  bool same = false;          // on all ranks
  bool trained_same = false;  // before the fit was over
  double first = 0, last = 0;  // losses of this rank
};

Fitted fitted(TrainerConfig config, bool use_qadam = false) {
  manual_seed(3);
  Bagua model(use_qadam);
  data::DataLoader train(toy_points(60), {.batch_size = 5, .shuffle = true, .seed = 7});
  Trainer trainer(std::move(config));
  trainer.fit(model, train);
  const auto end = model.losses.size();
  Strategy& strategy = trainer.fabric().strategy();
  return {values_of(model), same_on_all(strategy, values_of(model)), same_on_all(strategy, model.trained),
          (model.losses[0] + model.losses[1]) / 2, (model.losses[end - 1] + model.losses[end - 2]) / 2};
}

}  // namespace

TEST_CASE("bagua/gradient_allreduce matches ddp bit for bit") {
  pass_on(3, [] {
    for (const TrainerConfig& c : {TrainerConfig{.max_epochs = 3}, TrainerConfig{.max_epochs = 2,
                                                                                .accumulate_grad_batches = 2}}) {
      CHECK(fitted(with("gradient_allreduce", c)).weights == fitted(with("ddp", c)).weights);
      CHECK(fitted(with_strategy("bagua", c)).weights == fitted(with("ddp", c)).weights);  // the default
    }
  });
}

TEST_CASE("bagua/bytegrad: bit-equal replicas close to ddp, with hooks of backward and by hand") {
  pass_on(3, [] {
    const Fitted bytes = fitted(with("bytegrad", {.max_epochs = 3})), ddp = fitted(with("ddp", {.max_epochs = 3}));
    CHECK(bytes.same);
    const double far = largest_difference(bytes.weights, ddp.weights);
    CHECK(far <= 0.1);  // 12 steps of rate 0.1 with momentum 0.9, gradients of range 2 or less: 12 0.1 10 2 / 255
    CHECK(far > 0);
    const auto by_hand = [](const std::string& algorithm) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader train(toy_points(48), {.batch_size = 4, .shuffle = true, .seed = 7});
      Fabric fabric({.accelerator = "cpu", .strategy = "bagua", .bagua = {.algorithm = algorithm}});
      fabric.launch();
      auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
      for (const Batch& b : fabric.setup_dataloaders(train)) {
        opt.zero_grad();
        fabric.backward(cross_entropy(model(b[0]), b[1]));
        opt.step();
      }
      return std::pair(values_of(model), same_on_all(fabric.strategy(), values_of(model)));
    };
    const auto full = by_hand("gradient_allreduce"), rounded = by_hand("bytegrad"), own = by_hand("decentralized");
    CHECK(rounded.second);
    CHECK(differs(full.first, rounded.first));
    CHECK(largest_difference(full.first, rounded.first) <= 0.01);
    CHECK_FALSE(own.second);
    CHECK(largest_difference(full.first, own.first) <= 0.3);
  });
}

TEST_CASE("bagua: Fabric saves the average of differing replicas") {
  const CommonDir dir;
  pass_on(2, [&] {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    Fabric fabric({.accelerator = "cpu", .strategy = "bagua", .bagua = {.algorithm = "decentralized"}});
    fabric.launch();
    auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
    const Batch b = toy_points(6, static_cast<std::uint64_t>(20 + rank())).get_batch(
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, Generator(0));
    fabric.backward(cross_entropy(model(b[0]), b[1]));
    opt.step();
    const auto own = values_of(model);
    CHECK_FALSE(same_on_all(fabric.strategy(), own));
    fabric.save(dir.path / "ckpt", model);
    CHECK(values_of(model) == own);
    fabric.load(dir.path / "ckpt", model);
    const auto loaded = values_of(model);
    CHECK(same_on_all(fabric.strategy(), loaded));
    std::vector<std::vector<float>> average;
    for (const auto& values : own) {
      const Tensor mine = from_data(values, {static_cast<std::int64_t>(values.size())});
      average.push_back(fabric.all_reduce(mine).to_vector<float>());
    }
    CHECK(largest_difference(loaded, average) <= 1e-6);
  });
}

TEST_CASE("bagua: decentralized, low_precision_decentralized and async learn with differing replicas") {
  pass_on(2, [] {
    const double untrained = fitted(with("ddp", {.max_epochs = 1})).first;
    for (const std::string algorithm : {"decentralized", "low_precision_decentralized", "async"}) {
      for (const std::string peers : {"all", "shift_one"}) {
        if (peers == "shift_one" && algorithm != "decentralized") continue;
        CAPTURE(algorithm);
        const Fitted f = fitted(with(algorithm, {.max_epochs = 6, .bagua = {.peers = peers}}));
        CHECK(f.same);
        if (algorithm != "async") CHECK_FALSE(f.trained_same);  // whose last average may have come behind the last step
        CHECK(f.last < 0.7 * untrained);
        const auto far = [&](const std::vector<std::vector<float>>& w) {
          return largest_difference(w, fitted(with("ddp", {.max_epochs = 6})).weights);
        };
        CHECK(far(f.weights) < 1);  // weights of about 1: they were not left alone
      }
    }
  });
}

TEST_CASE("bagua/async: warm-up steps are those of ddp, and no average is left when a fit ends") {
  pass_on(3, [] {
    const TrainerConfig c{.max_epochs = 2, .bagua = {.warmup_steps = 8}};
    CHECK(fitted(with("async", c)).weights == fitted(with("ddp", c)).weights);
    for (int again = 0; again < 2; ++again) {
      const Fitted own = fitted(with("async", {.max_epochs = 2, .bagua = {.warmup_steps = 3}}));
      CHECK(differs(own.weights, fitted(with("ddp", {.max_epochs = 2})).weights, 1e-4));
    }
  });
}

TEST_CASE("bagua/qadam: Adam of ddp while it warms up, then near it with replicas equal to the bit") {
  pass_on(2, [] {
    const auto steps = [](std::int64_t n, const std::string& algorithm) {
      return fitted(with(algorithm, {.max_epochs = -1, .max_steps = n}), /*use_qadam=*/true);
    };
    CHECK(steps(4, "qadam").weights == steps(4, "ddp").weights);
    const Fitted bytes = steps(14, "qadam"), full = steps(14, "ddp");  // ddp: the same with exact gradients
    CHECK(bytes.same);
    const double far = largest_difference(bytes.weights, full.weights);
    CHECK(far > 0);
    CHECK(far <= 0.05);  // 10 steps of 0.02, each off by 1/4 of itself at most
    CHECK(bytes.last < bytes.first);
  });
}

TEST_CASE("bagua: a resumed fit has the bits of an uninterrupted one, on every rank") {
  const CommonDir dir;
  pass_on(4, [&] {
    for (const std::string algorithm : {"ddp", "bytegrad", "decentralized", "low_precision_decentralized", "qadam"}) {
      for (const std::string peers : {"all", "shift_one"}) {
        if (peers == "shift_one" && algorithm != "decentralized") continue;
        CAPTURE(algorithm);
        CAPTURE(peers);
        const auto folder = dir.path / (algorithm + peers);
        const auto run = [&](const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
          manual_seed(ckpt.empty() ? 3 : 999);
          Bagua model(algorithm == "qadam", /*dropout=*/0.25);
          data::DataLoader train(toy_points(48), {.batch_size = 3, .shuffle = true, .seed = ckpt.empty() ? 7u : 8u});
          auto config = with(algorithm, {.max_epochs = 2, .bagua = {.peers = peers}});
          if (policy) config.callbacks.push_back(policy);
          Trainer(config).fit(model, DataModule{.train = borrowed(train)}, ckpt);
          return values_of(model);
        };
        const auto whole = run(std::make_shared<SaveAlways>(folder), {});
        for (const int i : {0, 2, 5, 7}) CHECK(run(nullptr, (folder / std::to_string(i)).string()) == whole);
      }
    }
  });
}

namespace {

/// Returns the average of all ranks' values, in double precision.
std::vector<std::vector<float>> average_of(Strategy& strategy, const std::vector<std::vector<float>>& own) {
  std::vector<std::vector<float>> average;
  for (const auto& values : own) {
    const auto n = static_cast<std::int64_t>(values.size());
    const Tensor all = strategy.all_gather(from_data(values, {n}).to(kFloat64), false);
    average.push_back(mean(all, {0}).to(kFloat32).to_vector<float>());
  }
  return average;
}

}  // namespace

TEST_CASE("bagua: replicas are evaluated, saved and returned as their average, and each continues training unchanged") {
  const CommonDir dir;
  struct Run {
    std::vector<std::vector<float>> weights, trained;
    std::vector<std::vector<std::vector<float>>> validated;
  };
  const auto run = [&](const std::string& algorithm, TrainerConfig c, bool validates, const std::string& ckpt = {}) {
    manual_seed(ckpt.empty() ? 3 : 999);
    Bagua model(/*use_qadam=*/false, /*dropout=*/0.25);
    data::DataLoader train(toy_points(36), {.batch_size = 4, .shuffle = true, .seed = 7});
    data::DataLoader val(toy_points(18), {.batch_size = 3});
    c.num_sanity_val_steps = 0;
    c.val_check_interval = 2;
    struct SaveInside : Callback {
      std::function<void()> save;
      void on_validation_batch_end(RunContext&, const Batch&, int) override { save(); }
    };
    const auto inside = std::make_shared<SaveInside>();
    if (validates && ckpt.empty()) c.callbacks.push_back(inside);
    Trainer trainer(with(algorithm, std::move(c)));
    const std::filesystem::path folder = dir.path / algorithm;
    inside->save = [&, saved = 0]() mutable { trainer.save_checkpoint(folder / std::to_string(saved++)); };
    DataModule data{.train = borrowed(train)};
    if (validates) data.val = borrowed(val);
    trainer.fit(model, data, ckpt);
    if (ckpt.empty()) trainer.save_checkpoint(folder / "after");
    Strategy& strategy = trainer.fabric().strategy();
    CHECK_FALSE(same_on_all(strategy, model.trained));
    CHECK(same_on_all(strategy, values_of(model)));
    CHECK(largest_difference(values_of(model), average_of(strategy, model.trained)) < 1e-6);
    for (const auto& values : model.validated) CHECK(same_on_all(strategy, values));
    return Run{values_of(model), model.trained, model.validated};
  };
  pass_on(3, [&] {
    for (const std::string algorithm : {"decentralized", "low_precision_decentralized"}) {
      CAPTURE(algorithm);
      const std::string folder = dir.path / algorithm;
      const Run plain = run(algorithm, {.max_epochs = 2}, /*validates=*/false);
      const Run whole = run(algorithm, {.max_epochs = 2}, /*validates=*/true);
      CHECK(whole.trained == plain.trained);
      REQUIRE(whole.validated.size() == 4);
      for (int i = 0; i < 4; ++i) {
        const Checkpoint c = read_checkpoint(folder + "/" + std::to_string(i));
        Bagua saved;
        saved.load_state_dict(c.model);
        CHECK(values_of(saved) == whole.validated[static_cast<std::size_t>(i)]);
        CHECK(values_of(c.tensors.sub("rank0.model.")) != values_of(c.tensors.sub("rank1.model.")));
        CHECK(run(algorithm, {.max_epochs = 2}, true, folder + "/" + std::to_string(i)).trained == plain.trained);
      }
      const Run longer = run(algorithm, {.max_epochs = 3}, false);
      run(algorithm, {.max_epochs = 2}, false);
      CHECK(run(algorithm, {.max_epochs = 3}, false, folder + "/after").trained == longer.trained);
    }
  });
}

TEST_CASE("bagua: three ranks on a ring resume bit for bit, and other numbers of ranks start from the average") {
  const CommonDir dir;
  const auto run = [&](TrainerConfig config, const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt) {
    manual_seed(ckpt.empty() ? 3 : 999);
    Bagua model;
    data::DataLoader train(toy_points(30), {.batch_size = 2, .shuffle = true, .seed = 7});
    config.max_epochs = 2;
    if (policy) config.callbacks.push_back(policy);
    Trainer trainer(config);
    trainer.fit(model, DataModule{.train = borrowed(train)}, ckpt);
    return std::pair(values_of(model), trainer.global_step());
  };
  pass_on(3, [&] {
    const auto config = with("low_precision_decentralized");
    const auto whole = run(config, std::make_shared<SaveAlways>(dir.path), {});
    CHECK(run(config, nullptr, (dir.path / "2").string()) == whole);
    // Other strategies resume from the average, and these from theirs.
    for (const char* algorithm : {"ddp", "decentralized", "async"}) {
      const std::string saved = dir.path / (std::string("by ") + algorithm);
      CHECK(run(with(algorithm), nullptr, (dir.path / "2").string()).second == 10);
      run(with(algorithm), std::make_shared<SaveAlways>(saved), {});
      for (const char* other : {"ddp", "decentralized", "async", "bytegrad"})
        CHECK(run(with(other), nullptr, (std::filesystem::path(saved) / "7").string()).second == 10);
    }
  });
  if (distributed::is_launched()) return;
  CHECK(run(quiet(), nullptr, (dir.path / "5").string()).second == 5 + 15);
}

TEST_CASE("bagua: rates times the root of the number of ranks, of async behind its warm-up, once in a resumed fit") {
  const CommonDir dir;
  struct Rates : Callback {
    std::vector<double> of_steps;
    void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
      of_steps.push_back(run.optimizers->optimizer().param_groups()[0]["lr"]);
    }
  };
  pass_on(4, [&] {
    const auto rates = [&](TrainerConfig c, const std::string& ckpt = {}) {
      manual_seed(3);
      Bagua model;
      data::DataLoader train(toy_points(48), {.batch_size = 2, .seed = 7});
      const auto seen = std::make_shared<Rates>();
      c.callbacks.push_back(seen);
      if (ckpt.empty()) c.callbacks.push_back(std::make_shared<SaveAlways>(dir.path / c.bagua.algorithm));
      const std::string algorithm = c.bagua.algorithm;
      Trainer(with(algorithm, std::move(c))).fit(model, DataModule{.train = borrowed(train)}, ckpt);
      return seen->of_steps;
    };
    const auto plain = rates({.max_epochs = 1, .bagua = {.algorithm = "decentralized"}});
    REQUIRE(plain.size() == 6);
    for (const std::string algorithm : {"decentralized", "low_precision_decentralized", "async"}) {
      CAPTURE(algorithm);
      const TrainerConfig c{
          .max_epochs = 1, .bagua = {.algorithm = algorithm, .scale_lr = "sqrt", .warmup_steps = 2}};
      const auto scaled = rates(c), resumed = rates(c, dir.path / algorithm / "3");
      for (std::size_t i = 0; i < 6; ++i)
        CHECK(scaled[i] == approx(plain[i] * (algorithm == "async" && i < 2 ? 1 : 2), {.relative = 1e-12}));
      CHECK(resumed == std::vector<double>(scaled.end() - static_cast<std::ptrdiff_t>(resumed.size()), scaled.end()));
    }
  });
}

TEST_CASE("bagua/unknown_algorithm lists the known ones; what does not go together is refused") {
  const auto refusal = [](TrainerConfig c) {
    c.strategy = "bagua";
    return message_of<UsageError>([&] { check_config(c); });
  };
  CHECK(refusal({.bagua = {.algorithm = "onebit"}}) ==
        "--bagua-algorithm onebit: there are gradient_allreduce, bytegrad, decentralized, "
        "low_precision_decentralized, qadam, async. Use one of them.");
  CHECK(refusal({.bagua = {.peers = "some"}}) == "--bagua-peers some: choose all or shift_one.");
  for (const TrainerConfig& c : {TrainerConfig{.bagua = {.algorithm = "bytegrad", .scale_lr = "sqrt"}},
                                 TrainerConfig{.bagua = {.algorithm = "async", .scale_lr = "linear"}}})
    CHECK(contains(refusal(c), "choose none, or sqrt with --bagua-algorithm decentralized"));
  CHECK(refusal({.bagua = {.warmup_steps = -1}}) == "--bagua-warmup-steps -1: give 0 or more.");
  CHECK(refusal({.bagua = {.sync_interval_ms = -1}}) == "--bagua-sync-interval-ms -1: give 0 or more.");
  pass_on(3, [] {
    const auto fit = [](const TrainerConfig& c) {
      return message_of<UsageError>([&] { fitted(with(c.bagua.algorithm, c)); });
    };
    CHECK(contains(fit({.max_epochs = 1, .bagua = {.algorithm = "qadam"}}), "it needs one optimizer, optim::QAdam"));
    CHECK(contains(fit({.max_epochs = 1, .bagua = {.algorithm = "decentralized", .peers = "shift_one"}}),
                   "it makes pairs, and there are 3 ranks"));
  });
}
