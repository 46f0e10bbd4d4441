// Accumulating k batches equals one batch of their samples, at the ragged end of an epoch too.
#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

std::vector<std::vector<double>> train(std::int64_t samples, std::int64_t batch_size, std::int64_t accumulate,
                                       std::optional<double> clip = {}) {
  manual_seed(2);
  struct Plain : ToyModule {
    Plain() : ToyModule({.dropout = 0.0}) {}
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}); }
  } model;
  data::DataLoader loader(toy_points(samples), {.batch_size = batch_size});
  Trainer trainer(quiet(
      {.max_epochs = 3, .accumulate_grad_batches = accumulate, .gradient_clip_val = clip, .precision = "64-true"}));
  trainer.fit(model, loader);
  const std::int64_t windows = (samples + batch_size * accumulate - 1) / (batch_size * accumulate);
  CHECK(trainer.global_step() == 3 * windows);
  CHECK(trainer.state().optimizer_steps.at(0) == 3 * windows);
  CHECK(trainer.state().samples == 3 * samples);
  std::vector<std::vector<double>> out;
  for (const auto& [name, t] : model.state_dict()) out.push_back(t.to_vector<double>());
  return out;
}

/// Both sides sum the same terms in another order: in double, a few hundred roundings over all steps.
void check_equal(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  CHECK(largest_difference(a, b) < 1000 * std::numeric_limits<double>::epsilon());
}

}  // namespace

TEST_CASE("loops/accumulation_equals_big_batch") { check_equal(train(24, 4, 3), train(24, 12, 1)); }

TEST_CASE("loops/accumulation_equals_big_batch: with a ragged last batch and a short last window") {
  check_equal(train(22, 4, 3), train(22, 12, 1));  // windows 4+4+4, 4+4+2
  check_equal(train(29, 4, 3), train(29, 12, 1));  // 4+4+4, 4+4+4, 4+1
  check_equal(train(26, 4, 3), train(26, 12, 1));  // 4+4+4, 4+4+4, 2
}

TEST_CASE("gradients are corrected before they are clipped") {
  check_equal(train(29, 4, 3, 0.05), train(29, 12, 1, 0.05));
  CHECK(train(29, 4, 3, 0.05) != train(29, 4, 3));
}

TEST_CASE("row-wise gradients are corrected and clipped as dense ones") {
  struct Words : LevinModule {
    explicit Words(bool sparse) : emb(add<nn::Embedding>("emb", 5, 6, nn::EmbeddingOptions{.sparse = sparse})) {}
    nn::Embedding& emb;
    StepOutput training_step(const Batch& b, int) override { return mean(square(emb(b[1]) - b[0])); }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.5}); }
  };
  const auto trained = [](bool sparse) {
    manual_seed(2);
    Words model(sparse);
    const std::vector<double> before = model.emb.weight.to_vector<double>();
    data::DataLoader loader(toy_points(29), {.batch_size = 4});
    Trainer(quiet({.max_epochs = 2, .accumulate_grad_batches = 3, .gradient_clip_val = 0.05, .precision = "64-true"}))
        .fit(model, loader);
    CHECK(model.emb.weight.to_vector<double>() != before);
    return std::vector<std::vector<double>>{model.emb.weight.to_vector<double>()};
  };
  check_equal(trained(true), trained(false));
}

TEST_CASE("a loss may report its own weight") {
  // The loss sums over rows; weighted by its rows' number it must act as the mean over all.
  struct Weighted : ToyModule {
    Weighted() : ToyModule({.dropout = 0.0}) {}
    StepOutput training_step(const Batch& b, int) override {
      const Tensor few = b[0].narrow(0, 0, (b.size() + 1) / 2), labels = b[1].narrow(0, 0, (b.size() + 1) / 2);
      return StepOutput(cross_entropy((*this)(few), labels)).weight(static_cast<double>(few.size(0)));
    }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
  };
  manual_seed(2);
  Weighted a;
  a.to(kFloat64);
  const auto points = toy_points(7);
  data::DataLoader loader(points, {.batch_size = 4});
  Trainer(quiet({.max_epochs = 1, .accumulate_grad_batches = 2, .precision = "64-true"})).fit(a, loader);
  manual_seed(2);
  Weighted b;
  b.to(kFloat64);
  const auto all = points.all();  // rows 0, 1 of batch one; 4, 5 of batch two
  const Tensor rows = tensor<std::int64_t>({0, 1, 4, 5});
  optim::SGD opt(b.parameters(), {.lr = 0.1});
  cross_entropy(b(index_select(all[0].to(kFloat64), 0, rows)), index_select(all[1], 0, rows)).backward();
  opt.step();
  for (const auto& [name, t] : a.state_dict()) {
    INFO(name);
    CHECK((t - b.state_dict().at(name)).abs().max().item<double>() < 1e-14);
  }
}

TEST_CASE("loops/skip_step: no loss, no backward; a window of such steps moves neither optimizer nor scheduler") {
  manual_seed(2);
  struct Skips : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      if (i < 2 || i == 4) return {};
      return ToyModule::training_step(b, i);
    }
  } model;
  data::DataLoader loader(toy_points(24), {.batch_size = 4});
  Trainer trainer(quiet({.max_epochs = 1, .accumulate_grad_batches = 2}));
  trainer.fit(model, loader);
  CHECK(trainer.global_step() == 3);
  CHECK(trainer.state().optimizer_steps.at(0) == 2);
  CHECK(model.losses.size() == 3);
}

TEST_CASE("a loss of several numbers is refused") {
  struct Wrong : ToyModule {
    StepOutput training_step(const Batch& b, int) override { return (*this)(b[0]); }
  } model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  Trainer trainer(quiet({.max_epochs = 1}));
  CHECK(contains(message_of<ShapeError>([&] { trainer.fit(model, loader); }), "the loss has shape (4, 3)"));
}
