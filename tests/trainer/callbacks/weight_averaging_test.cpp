// Averages of weights: their values by hand, where they are used, and what checkpoints hold.
#include <levin/interop/safetensors.h>

#include <cmath>
#include <csignal>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

using Values = std::vector<std::vector<double>>;

Values doubles(const StateDict& state) {
  Values out;
  for (const auto& [name, t] : state) out.push_back(t.to(kFloat64).to_vector<double>());
  return out;
}

/// Files have their own order.
StateDict in_order_of(const nn::Module& module, const StateDict& state) {
  StateDict out;
  for (const auto& [name, t] : module.state_dict()) out.set(name, state.at(name));
  CHECK(out.size() == state.size());
  return out;
}

/// A network with running statistics, which notes its weights after each step and what validation sees.
struct NormToy : ToyModule {
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 6);
  std::vector<Values> after_step, at_validation, after_epoch;

  Tensor forward(const Tensor& x) override {
    return ToyModule::forward(norm(x.reshape({x.sizes()[0], 6, 1, 1})).flatten(1));
  }
  void on_train_batch_end(const StepOutput&, const Batch&, int) override {
    after_step.push_back(doubles(state_dict()));
  }
  void on_validation_epoch_start() override { at_validation.push_back(doubles(state_dict())); }
  void on_train_epoch_end() override { after_epoch.push_back(doubles(state_dict())); }
};

void check_close(const Values& got, const Values& expected) {
  CHECK(largest_difference(got, expected) <= 1e-6);
}

/// Four batches an epoch and a validation.
template <class M>
void fit(M& model, std::vector<CallbackPtr> callbacks, TrainerConfig config = {}, const std::string& ckpt = {}) {
  data::DataLoader train(toy_points(16), {.batch_size = 4}), val(toy_points(8, 6), {.batch_size = 4});
  if (!config.max_epochs) config.max_epochs = 3;
  config = quiet(config);
  config.num_sanity_val_steps = 1;
  config.callbacks = std::move(callbacks);
  Trainer(config).fit(model, train, val, ckpt);
}

/// decay * average + (1 - decay) * value, beginning with the first value.
Values ema_of(const std::vector<Values>& values, double decay) {
  Values average = values.at(0);
  for (std::size_t n = 1; n < values.size(); ++n)
    for (std::size_t i = 0; i < average.size(); ++i)
      for (std::size_t k = 0; k < average[i].size(); ++k)
        average[i][k] = decay * average[i][k] + (1 - decay) * values[n][i][k];
  return average;
}

Values mean_of(const std::vector<Values>& values) {
  Values mean = values.at(0);
  for (std::size_t i = 0; i < mean.size(); ++i)
    for (std::size_t k = 0; k < mean[i].size(); ++k) {
      double sum = 0;
      for (const Values& v : values) sum += v[i][k];
      mean[i][k] = sum / static_cast<double>(values.size());
    }
  return mean;
}

/// BatchNorm's number of batches is an integer, which is copied.
Values with_last_count(Values v, const Values& last) {
  v.back() = last.back();
  return v;
}

template <class T>
std::vector<T> first(const std::vector<T>& v, std::ptrdiff_t n) {
  return std::vector<T>(v.begin(), v.begin() + n);
}

}  // namespace

TEST_CASE("callbacks/ema_by_hand: the average is used in validation and at the end; training is unaffected") {
  manual_seed(2);
  NormToy plain;
  fit(plain, {});
  manual_seed(2);
  NormToy model;
  fit(model, {EMA({.decay = 0.9})});
  CHECK(model.losses == plain.losses);
  CHECK(model.after_step == plain.after_step);
  const auto expected = with_last_count(ema_of(model.after_step, 0.9), model.after_step.back());
  check_close(doubles(model.state_dict()), expected);
  // The sanity check comes before the first average, the others see it.
  REQUIRE(model.at_validation.size() == 4);
  CHECK(model.at_validation[0] == plain.at_validation[0]);
  check_close(model.at_validation[2], with_last_count(ema_of(first(model.after_step, 8), 0.9), model.after_step[7]));
  CHECK(model.after_epoch == plain.after_epoch);
}

TEST_CASE("callbacks/ema_options: beginning, frequency, buffers, epochs") {
  const auto steps_used = [](const EMAWeightAveragingOptions& options, TrainerConfig config = {}) {
    manual_seed(2);
    NormToy model;
    const auto ema = std::make_shared<EMA>(options);
    fit(model, {ema}, config);
    return std::tuple(doubles(model.state_dict()), model.after_step, ema->state().get<std::int64_t>("count"));
  };
  {
    const auto [end, steps, count] =
        steps_used({.decay = 0.5, .update_every_n_steps = 3, .update_starting_at_step = 5});
    CHECK(count == 2);  // steps 6 and 9, from 0
    check_close(end, with_last_count(ema_of({steps[6], steps[9]}, 0.5), steps[9]));
  }
  {
    const auto [end, steps, count] = steps_used({.use_buffers = false, .decay = 0.5});
    CHECK(count == 12);
    CHECK(end[end.size() - 2] == steps.back()[end.size() - 2]);  // running_var
  }
  {
    const auto [end, steps, count] =
        steps_used({.decay = 0.5, .update_starting_at_step = 1000, .update_starting_at_epoch = 1});
    CHECK(count == 2);
    check_close(end, with_last_count(ema_of({steps[7], steps[11]}, 0.5), steps[11]));
  }
  {
    const auto [end, steps, count] = steps_used({.decay = 0.5}, {.accumulate_grad_batches = 2});
    CHECK(count == 6);
    CHECK(steps.size() == 12);
    check_close(end,
                with_last_count(ema_of({steps[1], steps[3], steps[5], steps[7], steps[9], steps[11]}, 0.5), steps[11]));
  }
  CHECK_THROWS_AS(EMA({.decay = 1.5}), UsageError);
  CHECK_THROWS_AS(EMA({.update_every_n_steps = 0}), UsageError);
}

TEST_CASE("callbacks/weight_averaging: the mean of all steps; a class of one's own says when") {
  manual_seed(2);
  NormToy model;
  fit(model, {WeightAveraging()});
  check_close(doubles(model.state_dict()), with_last_count(mean_of(model.after_step), model.after_step.back()));
  struct Odd : WeightAveraging {
    bool should_update(std::optional<std::int64_t> step, std::optional<std::int64_t>) const override {
      return step && *step % 2 == 1;
    }
  };
  manual_seed(2);
  NormToy odd;
  fit(odd, {Odd()}, {.max_epochs = 1});
  check_close(doubles(odd.state_dict()),
              with_last_count(mean_of({odd.after_step[1], odd.after_step[3]}), odd.after_step[3]));
}

TEST_CASE("callbacks/ema_checkpoint: holds the average as its network and the trained weights beside it") {
  manual_seed(2);
  const TempDir folder;
  NormToy model;
  fit(model, {EMA({.decay = 0.9}), ModelCheckpoint({.dirpath = folder.path, .every_n_epochs = 1})});
  const auto average = interop::load_safetensors(folder.path / "last/model.safetensors").tensors;
  const auto state = interop::load_safetensors(folder.path / "last/state.safetensors").tensors;
  CHECK(doubles(in_order_of(model, average)) == doubles(model.state_dict()));
  CHECK(doubles(in_order_of(model, state.sub("model."))) == model.after_step.back());
  // A test sees the average, a resumed fit trains the trained weights.
  NormToy fresh;
  data::DataLoader test(toy_points(8, 6), {.batch_size = 4});
  const DataModule data{.test = borrowed(test)};
  Trainer trainer(quiet());
  trainer.test(fresh, data, (folder.path / "last").string());
  CHECK(doubles(fresh.state_dict()) == doubles(model.state_dict()));
}

TEST_CASE("callbacks/ema_interrupted_validation: a signal there leaves the trained weights in the checkpoint") {
  const TempDir folder;
  const auto run = [&](const std::filesystem::path& dir, bool interrupt, const std::string& ckpt) {
    manual_seed(2);
    NormToy model;
    int validations = 0;
    std::vector<CallbackPtr> callbacks = {EMA({.decay = 0.9}), ModelCheckpoint({.dirpath = dir})};
    if (interrupt)
      callbacks.push_back(LambdaCallback({.on_validation_batch_start = [&](RunContext& context, const Batch&, int) {
        if (!context.sanity_checking && ++validations == 3) std::raise(SIGINT);
      }}));
    if (interrupt)
      CHECK_THROWS_AS(fit(model, callbacks, {}, ckpt), Interrupted);
    else
      fit(model, callbacks, {}, ckpt);
    return doubles(model.state_dict());
  };
  const TempDir other;
  const auto whole = run(other.path, false, {});
  run(folder.path, true, {});
  CHECK(run(folder.path, false, (folder.path / "last").string()) == whole);
}

TEST_CASE("callbacks/ema_half: float32 averages of half weights, and of float32 masters") {
  for (const char* precision : {"16-true", "bf16-true", "16-o2", "16-mixed"}) {
    INFO(precision);
    const auto ema = std::make_shared<EMA>(EMAWeightAveragingOptions{.decay = 0.9});
    manual_seed(2);
    ToyModule plain;
    fit(plain, {}, {.precision = precision});
    manual_seed(2);
    ToyModule again;
    fit(again, {ema}, {.precision = precision});
    CHECK(again.losses == plain.losses);
    for (const auto& [name, t] : ema->average()) CHECK(t.dtype() == kFloat32);
    for (const auto& [name, t] : again.state_dict()) CHECK(t.dtype() == plain.state_dict().at(name).dtype());
  }
}

TEST_CASE("callbacks/swalr: from the rate to swa_lr along a cosine or a line") {
  const Tensor w = zeros({1}).requires_grad_();
  optim::SGD sgd(optim::named({w}), {.lr = 1.0});
  SWALR cosine(sgd, {0.2}, 4);
  std::vector<double> rates = {cosine.get_last_lr()[0]};
  for (int i = 0; i < 6; ++i) {
    cosine.step();
    rates.push_back(cosine.get_last_lr()[0]);
  }
  // PyTorch 2.11: torch.optim.swa_utils.SWALR(sgd, 0.2, anneal_epochs=4)
  const std::vector<double> expected = {1.0, 0.8828427124746191, 0.6, 0.31715728752538104, 0.2, 0.2, 0.2};
  for (std::size_t i = 0; i < rates.size(); ++i) CHECK(rates[i] == approx(expected[i], {.relative = 1e-12}));
  sgd.param_groups()[0]["lr"] = 1.0;
  SWALR line(sgd, {0.2}, 4, optim::Anneal::linear);
  line.step();
  CHECK(line.get_last_lr()[0] == approx(0.8, {.relative = 1e-12}));
  sgd.param_groups()[0]["lr"] = 1.0;
  SWALR at_once(sgd, {0.2}, 0);
  CHECK(at_once.get_last_lr()[0] == approx(0.2, {.relative = 1e-12}));
  CHECK_THROWS_AS(SWALR(sgd, {0.2, 0.3}), ValueError);
  CHECK_THROWS_AS(SWALR(sgd, {0.2}, -1), ValueError);
}

TEST_CASE("callbacks/swa: the mean of the last epochs, its rate, and running statistics anew") {
  manual_seed(2);
  NormToy model;
  model.drop.eval();  // so that the extra walk's statistics do not depend on chance
  std::vector<double> rates;
  const auto swa = std::make_shared<StochasticWeightAveraging>(
      StochasticWeightAveragingOptions{.swa_lrs = {0.05}, .swa_epoch_start = 0.6, .annealing_epochs = 2});
  fit(model,
      {swa, LambdaCallback(
                {.on_train_epoch_end =
                     [&](RunContext& run) { rates.push_back(run.optimizers->optimizer().param_groups()[0]["lr"]); }})},
      {.max_epochs = 5});
  REQUIRE(model.after_epoch.size() == 5);
  // Epochs 3 to 5; the toy's own schedule has moved the rate by then.
  CHECK(swa->state().get<std::int64_t>("count") == 3);
  CHECK(rates[3] == approx(0.05, {.relative = 1e-12}));
  CHECK(rates[4] == approx(0.05, {.relative = 1e-12}));
  auto mean = mean_of({model.after_epoch[2], model.after_epoch[3], model.after_epoch[4]});
  auto end = doubles(model.state_dict());
  // The last three are the statistics: those of the training data, whose batches each count the same.
  const auto points = toy_points(16).tensors()[0].reshape({4, 4, 6}).to(kFloat64);
  const auto means = points.mean({0, 1}).to_vector<double>();
  const auto variances = var(points, {1}, 1).mean({0}).to_vector<double>();
  for (std::size_t c = 0; c < 6; ++c) {
    CHECK(end[end.size() - 3][c] == approx(means[c], {.relative = 1e-5}));
    CHECK(end[end.size() - 2][c] == approx(variances[c], {.relative = 1e-5}));
  }
  CHECK(end.back()[0] == 4);
  for (auto* v : {&mean, &end}) v->resize(v->size() - 3);
  check_close(end, mean);
  // Values logged during the extra pass are dropped.
  CHECK(model.losses.size() == 5 * 4 + 4);
}

TEST_CASE("callbacks/swa_options") {
  const auto count = [](const std::variant<double, std::int64_t>& start) {
    manual_seed(2);
    ToyModule model;
    const auto swa = std::make_shared<StochasticWeightAveraging>(
        StochasticWeightAveragingOptions{.swa_lrs = {0.05}, .swa_epoch_start = start});
    fit(model, {swa}, {.max_epochs = 5});
    return swa->state().get<std::int64_t>("count");
  };
  CHECK(count(0.8) == 2);
  CHECK(count(0.0) == 5);
  CHECK(count(std::int64_t{5}) == 1);
  CHECK(count(std::int64_t{9}) == 0);
  using Options = StochasticWeightAveragingOptions;
  CHECK_THROWS_AS(StochasticWeightAveraging(Options{}), UsageError);
  CHECK_THROWS_AS(StochasticWeightAveraging(Options{.swa_lrs = {0.0}}), UsageError);
  CHECK_THROWS_AS(StochasticWeightAveraging(Options{.swa_lrs = {0.1}, .swa_epoch_start = 1.5}), UsageError);
  CHECK_THROWS_AS(StochasticWeightAveraging(Options{.swa_lrs = {0.1}, .swa_epoch_start = std::int64_t{0}}), UsageError);
  CHECK_THROWS_AS(StochasticWeightAveraging(Options{.swa_lrs = {0.1}, .annealing_epochs = -1}), UsageError);
  ToyModule model;
  CHECK_THROWS_AS(
      fit(model, {StochasticWeightAveraging(Options{.swa_lrs = {0.1}})}, {.max_epochs = -1, .max_steps = 2}),
      UsageError);
  model.automatic_optimization = false;
  CHECK_THROWS_WITH_AS(fit(model, {StochasticWeightAveraging(Options{.swa_lrs = {0.1}})}, {.max_epochs = 2}),
                       doctest::Contains("uses manual optimization"), UsageError);
}
