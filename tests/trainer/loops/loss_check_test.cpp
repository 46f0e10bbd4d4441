// The warning about a loss that is not finite.
#include <levin/core/warning.h>

#include <fmt/format.h>

#include <limits>

#include "support/comparison.h"
#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

/// Adds `value` to its input from call `from` on, counted by a buffer as batch norm counts its batches.
struct Planted : nn::Module {
  Tensor calls = register_buffer("calls", zeros({}));
  float value = 0;
  double from = 1e9;
  Tensor forward(const Tensor& x) override {
    if (is_training()) calls.add_(1);
    return calls.item<double>() >= from ? x + value : x + 0.f;
  }
};

struct Network : LevinModule {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 12);
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 12);
  nn::Dropout& drop = add<nn::Dropout>("drop", 0.25);
  Planted& middle = add<Planted>("middle");
  nn::Linear& fc2 = add<nn::Linear>("fc2", 12, 3);
  metrics::Accuracy& seen = add_metric<metrics::Accuracy>("seen", metrics::StatScoresOptions{.num_classes = 3});
  double bad_loss_at = 1e9;  ///< makes the loss infinite outside of all modules
  int ended = 0;             ///< training steps that returned

  Tensor forward(const Tensor& x) override {
    const Tensor hidden = norm(relu(fc1(x)).reshape({-1, 12, 1, 1})).reshape({-1, 12});
    log("hidden", hidden.mean(), {.on_step = false, .on_epoch = true});
    return fc2(middle(drop(hidden)));
  }
  StepOutput training_step(const Batch& b, int) override {
    const Tensor logits = (*this)(b[0]);
    seen.update(logits, b[1]);
    log("seen", seen, {.on_step = false, .on_epoch = true});
    Tensor loss = cross_entropy(logits, b[1]);
    if (ended >= bad_loss_at) loss = loss / 0.f;
    log("train_loss", loss, {.on_step = true, .on_epoch = true});
    ++ended;
    return loss;
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}); }
};

struct Outcome {
  std::vector<std::string> said;
  std::vector<std::vector<float>> weights;
  std::map<std::string, double> values;
  GeneratorState random;
};

Outcome fit(Network& model, TrainerConfig config = {}, const data::TensorDataset& points = toy_points(24)) {
  Outcome out;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { out.said.push_back(text); });
  data::DataLoader train(points, {.batch_size = 4, .seed = 1});
  if (!config.max_epochs) config.max_epochs = 2;
  Trainer trainer(quiet(config));
  trainer.fit(model, train);
  set_warning_handler(former);
  out.weights = values_of(model);
  out.values = trainer.metrics().results(Split::train);
  out.random = default_generator().state();
  return out;
}

std::vector<std::string> said_by(LevinModule& model) {
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  data::DataLoader train(toy_points(24), {.batch_size = 4, .seed = 1});
  Trainer(quiet({.max_epochs = 1})).fit(model, train);
  set_warning_handler(former);
  return said;
}

const std::string kRemedy = ". Lower the learning rate, clip gradients or use detect_anomaly.";

}  // namespace

TEST_CASE("loss check: one warning names the step and the first module whose output is not finite") {
  for (const float value : {kNan, kInf}) {
    for (const std::int64_t accumulated : {1, 2, 3}) {
      CAPTURE(accumulated);
      manual_seed(3);
      Network model;
      model.middle.value = value;
      model.middle.from = 5;  // the fifth batch of 12
      const Outcome out = fit(model, {.accumulate_grad_batches = accumulated});
      const std::int64_t step = (5 + accumulated - 1) / accumulated;
      CHECK(out.said == std::vector<std::string>{fmt::format(
                            "[fit] loss is nan at step {}: the first module whose output is not finite is middle "
                            "(Planted){}",
                            step, kRemedy)});
    }
  }
}

TEST_CASE("loss check: an infinite loss outside of all modules, bad weights, and bad data") {
  manual_seed(3);
  Network model;
  model.bad_loss_at = 3;
  const Outcome out = fit(model);
  CHECK(out.said ==
        std::vector<std::string>{"[fit] loss is inf at step 4: forward is finite for this batch, so look at "
                                 "what computes the loss from it" +
                                 kRemedy});
  Network broken;
  {
    const no_grad guard;
    broken.fc2.weight.fill_(kInf);
  }
  CHECK(fit(broken).said ==
        std::vector<std::string>{"[fit] loss is nan at step 1: the first module whose output is not finite is fc2 "
                                 "(Linear), whose weight is not finite either" +
                                 kRemedy});
  Network fed;
  Tensor x = toy_points(24).tensors()[0].clone();
  x(21, 2) = kNan;
  CHECK(fit(fed, {}, data::TensorDataset({x, toy_points(24).tensors()[1]})).said ==
        std::vector<std::string>{"[fit] loss is nan at step 6: the batch holds values that are not finite" + kRemedy});
}

TEST_CASE("loss check: a network that is the module's child, and networks whose forward is not known") {
  struct Net : nn::Module {
    nn::Sequential& layers = add<nn::Sequential>("layers", nn::Linear(6, 12), Planted(), nn::Linear(12, 3));
    Tensor forward(const Tensor& x) override { return layers(x); }
  };
  struct Wraps : LevinModule {
    Net& net = add<Net>("net");
    StepOutput training_step(const Batch& b, int) override { return cross_entropy(net(b[0]), b[1]); }
    Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
  };
  struct TwoNetworks : Wraps {
    nn::Linear& head = add<nn::Linear>("head", 3, 3);
    StepOutput training_step(const Batch& b, int) override { return cross_entropy(head(net(b[0])), b[1]); }
  };
  const auto run = [](auto& model) {
    auto& planted = dynamic_cast<Planted&>(*model.net.layers.named_children()[1].second);
    planted.value = kNan;
    planted.from = 2;
    return said_by(model);
  };
  Wraps wraps;
  CHECK(run(wraps) ==
        std::vector<std::string>{"[fit] loss is nan at step 2: the first module whose output is not finite "
                                 "is net.layers.1 (Planted)" +
                                 kRemedy});
  TwoNetworks two;
  CHECK(run(two) == std::vector<std::string>{"[fit] loss is nan at step 2" + kRemedy});
}

TEST_CASE("loss check: random numbers, running statistics, metrics and logged values are those of a fit without it") {
  // The loss is spoilt after the last module, once, and its gradients are finite: weights go on as before.
  struct OnceInfinite : Network {
    bool spoils = false;
    StepOutput training_step(const Batch& b, int i) override {
      const int before = ended;
      StepOutput out = Network::training_step(b, i);
      const Tensor shift = full({}, spoils && before == 4 ? kInf : 0.f);
      return out.loss() + shift;
    }
  };
  const auto run = [](bool spoils) {
    manual_seed(3);
    OnceInfinite model;
    model.spoils = spoils;
    auto out = fit(model);
    CHECK(out.said.size() == (spoils ? 1 : 0));
    return out;
  };
  const Outcome with = run(true), without = run(false);
  CHECK(with.weights == without.weights);
  CHECK(with.values == without.values);
  CHECK(with.random == without.random);
}

TEST_CASE("loss check: silent in windows that the loss scaler skips") {
  manual_seed(3);
  Network model;
  model.middle.value = kInf;
  model.middle.from = 11;  // two of twelve batches
  CHECK(fit(model, {.precision = "16-mixed"}).said.empty());
}

TEST_CASE("loss check: manual optimization names the step only") {
  struct Manual : Network {
    Manual() { automatic_optimization = false; }
    StepOutput training_step(const Batch& b, int i) override {
      const auto [opt] = optimizers<1>();
      const StepOutput out = Network::training_step(b, i);
      opt.zero_grad();
      manual_backward(out.loss());
      opt.step();
      return out;
    }
  };
  for (const char* precision : {"32-true", "16-mixed"}) {
    manual_seed(3);
    Manual model;
    model.middle.value = kNan;
    model.middle.from = 9;
    const auto said = fit(model, {.precision = precision}).said;
    if (precision == std::string("16-mixed"))
      CHECK(said.empty());
    else
      CHECK(said == std::vector<std::string>{"[fit] loss is nan at step 9" + kRemedy});
  }
}

TEST_CASE("loss check: of several ranks only the one with the loss says so, and a forward that communicates ends") {
  pass_on(2, [] {
    struct Gathers : Network {
      bool gathers = false;
      Strategy* strategy = nullptr;
      Tensor forward(const Tensor& x) override {
        if (gathers) strategy->all_gather(zeros({1}), false);
        return Network::forward(x);
      }
    };
    for (const bool gathers : {false, true}) {
      manual_seed(3);
      Gathers model;
      model.middle.value = kNan;
      model.middle.from = rank() == 1 ? 3 : 1e9;
      model.gathers = gathers;
      TrainerConfig config{.max_epochs = 2, .accelerator = "cpu", .timeout = 60, .strategy = "ddp"};
      config.callbacks = {LambdaCallback({.on_fit_start = [&](RunContext& run) { model.strategy = run.strategy; }})};
      const auto said = fit(model, config).said;
      // Its gradients spoil the weights of all ranks: rank 0 sees that one step later.
      REQUIRE(said.size() == 1);
      const std::string cause = gathers ? ""
                                : rank() == 1
                                    ? ": the first module whose output is not finite is middle (Planted)"
                                    : ": the first module whose output is not finite is fc1 (Linear), whose weight is "
                                      "not finite either";
      CHECK(said[0] ==
            fmt::format("[fit] loss is nan at step {} on rank {}{}{}", rank() == 1 ? 3 : 4, rank(), cause, kRemedy));
    }
  });
}
