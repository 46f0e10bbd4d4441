// The order of a fit whose loader was given no seed follows manual_seed, on one rank and on several.
#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Records the samples of every training batch by their first coordinate.
struct Order : Callback {
  std::vector<std::vector<float>> batches;
  void on_train_batch_start(RunContext&, const Batch& b, int) override {
    batches.push_back(b[0].select(1, 0).to_vector<float>());
  }
};

struct OrderedFit {
  bool sampler = false;
  int workers = 0;
  std::optional<std::int64_t> config_seed{};  ///< seeds after the loader is made
  TrainerConfig config{};
};

std::vector<std::vector<float>> order_of(const OrderedFit& f, std::optional<std::uint64_t> seed) {
  ToyModule model;
  data::DataLoaderOptions options{.batch_size = 4, .shuffle = !f.sampler, .num_workers = f.workers};
  if (f.sampler) options.sampler = std::make_shared<data::RandomSampler>(24);
  data::DataLoader train(toy_points(24), options);
  if (seed) manual_seed(*seed);
  auto config = quiet(f.config);
  config.max_epochs = 2;
  config.seed = f.config_seed;
  const auto order = std::make_shared<Order>();
  config.callbacks = {order};
  Trainer(config).fit(model, train);
  return order->batches;
}

std::vector<float> sorted(std::vector<std::vector<float>> batches, std::size_t epoch) {
  std::vector<float> all;
  const std::size_t half = batches.size() / 2;
  for (std::size_t i = epoch * half; i < (epoch + 1) * half; ++i)
    all.insert(all.end(), batches[i].begin(), batches[i].end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("seeds/manual_seed decides the order of a fit, also of a loader that was made before it") {
  for (const bool sampler : {false, true}) {
    CAPTURE(sampler);
    const auto order = order_of({.sampler = sampler}, 1);
    CHECK(order_of({.sampler = sampler}, 1) == order);
    CHECK(order_of({.sampler = sampler, .workers = 2}, 1) == order);
    CHECK(order_of({.sampler = sampler}, 2) != order);
    const auto by_config = order_of({.sampler = sampler, .config_seed = 1}, std::nullopt);
    CHECK(order_of({.sampler = sampler, .config_seed = 1}, std::nullopt) == by_config);
    CHECK(order_of({.sampler = sampler, .config_seed = 2}, std::nullopt) != by_config);
    Fabric::seed_everything(9);
    CHECK(order_of({.sampler = sampler}, std::nullopt) != order);
  }
}

TEST_CASE("seeds/ranks that were seeded differently divide one permutation, that of rank zero's seed") {
  pass_on(3, [] {
    for (const bool sampler : {false, true}) {
      CAPTURE(sampler);
      TrainerConfig config{.accelerator = "cpu", .timeout = 60, .strategy = "ddp"};
      const auto own = order_of({.sampler = sampler, .config = config}, 5 + static_cast<std::uint64_t>(rank()));
      Trainer trainer(quiet(config));
      StateMap mine;
      for (std::size_t i = 0; i < own.size(); ++i)
        mine.set(std::to_string(i), std::vector<double>(own[i].begin(), own[i].end()));
      std::vector<std::vector<float>> all(own.size());
      for (const StateMap& of_rank : trainer.fabric().strategy().gather(mine))
        for (std::size_t i = 0; i < own.size(); ++i)
          for (const double x : of_rank.get<std::vector<double>>(std::to_string(i)))
            all[i].push_back(static_cast<float>(x));
      const auto points = toy_points(24);
      auto every = points.tensors()[0].select(1, 0).to_vector<float>();
      std::sort(every.begin(), every.end());
      CHECK(sorted(all, 0) == every);
      CHECK(sorted(all, 1) == every);
    }
  });
}
