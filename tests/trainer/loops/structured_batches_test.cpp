// Batches that are dictionaries, through the Trainer.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// The points as dictionaries: {"input": {"x": ..}, "y": ..}.
struct NamedPoints : data::Dataset {
  explicit NamedPoints(std::int64_t n) : points(toy_points(n)) {}
  data::TensorDataset points;
  std::int64_t size() const override { return points.size(); }
  Sample get(std::int64_t i, Generator& rng) const override {
    const auto [x, y] = points.get(i, rng);
    return Sample::dict({{"input", Sample::dict({{"x", x}})}, {"y", y}});
  }
};

struct NamedModule : ToyModule {
  using ToyModule::ToyModule;
  StepOutput training_step(const Batch& b, int) override {
    CHECK(b.keys() == std::vector<std::string>{"input", "y"});
    const Tensor loss = cross_entropy((*this)(b.part("input")["x"]), b["y"]);
    log("train_loss", loss);
    return loss;
  }
  void validation_step(const Batch& b, int) override {
    log("val_loss", cross_entropy((*this)(b.part("input")["x"]), b["y"]));
  }
  Tensor predict_step(const Batch& b, int) override { return (*this)(b.part("input")["x"]); }
  Batch transfer_batch_to_device(Batch batch, Device device) override {
    CHECK(batch.contains("y"));
    return ToyModule::transfer_batch_to_device(std::move(batch), device);
  }
  void on_train_batch_end(const StepOutput&, const Batch& b, int) override { CHECK(b.contains("y")); }
};

template <class Module, class Points>
std::vector<std::vector<float>> fit(const Points& points, TrainerConfig config) {
  manual_seed(3);
  Module model(ToyOptions{.dropout = 0});
  const data::DataLoaderOptions options{
      .batch_size = 6, .shuffle = true, .num_workers = 2, .pin_memory = true, .seed = 4};
  data::DataLoader train(points(22), options), val(points(9), {.batch_size = 4});
  config.max_epochs = 2;
  Trainer trainer(quiet(std::move(config)));
  trainer.fit(model, train, val);
  CHECK(trainer.predict(model, val)[0].size() == 3);
  return values_of(model);
}

}  // namespace

TEST_CASE("a fit on dictionaries has the bits of one on tuples: hooks, workers, overfitting, bf16 and dp") {
  const std::vector<TrainerConfig> configs = {
      {.accelerator = "cpu"},
      {.overfit_batches = 2, .accelerator = "cpu"},
      {.precision = "bf16-mixed", .accelerator = "cpu"},
      {.precision = "64-true", .accelerator = "cpu"},
      {.accelerator = "cpu", .devices = 2, .strategy = "dp"},
  };
  for (const TrainerConfig& config : configs) {
    CAPTURE(config.precision);
    CAPTURE(config.strategy);
    CHECK(fit<NamedModule>([](std::int64_t n) { return NamedPoints(n); }, config) ==
          fit<ToyModule>([](std::int64_t n) { return toy_points(n); }, config));
  }
}
