// Every multi-process strategy on CUDA devices compared with ddp and with one device on the whole batch.
#include <levin/optim/qadam.h>

#include "nccl/device_fits.h"

using namespace levin;
using namespace levin::test;

namespace {

using Weights = std::vector<std::vector<float>>;

struct Fitted {
  Weights weights;
  std::int64_t steps = 0;  // steps of the optimizer
  bool same = true;        // equal on all ranks
};

struct FitOptions {
  TrainerConfig config{};
  std::string ckpt{};
};

/// With "single" one device has the whole batch.
template <class Model = ToyModule>
Fitted fit(const std::string& strategy, const FitOptions& o) {
  manual_seed(3);
  Model model({.dropout = 0, .use_sgd = true});
  const bool alone = strategy == "single";
  if (!alone && rank() > 0) model.fc1.weight.detach().zero_();  // rank 0's values are broadcast
  data::DataLoader train(toy_points(36), {.batch_size = alone ? 12 : 12 / ranks(), .shuffle = true, .seed = 7});
  Trainer trainer(on_devices(strategy, o.config));
  trainer.fit(model, DataModule{.train = borrowed(train)}, o.ckpt);
  const Weights weights = values_of(model);
  Strategy& used = trainer.fabric().strategy();
  CHECK(used.device() == cuda(alone ? 0 : rank()));
  return {weights, trainer.state().optimizer_steps.at(0), alone || same_on_all(used, weights)};
}

double distance(const Fitted& a, const Fitted& b) { return largest_difference(a.weights, b.weights); }

struct Choice {
  std::string strategy;
  std::string algorithm = "gradient_allreduce";
};
const std::vector<Choice> kExact = {{"horovod"}, {"bagua"}, {"zero_1"}, {"zero_2"}, {"fsdp"}};

TrainerConfig with(const Choice& choice, TrainerConfig c) {
  c.bagua.algorithm = choice.algorithm;
  c.horovod.scale_lr = false;
  c.horovod.cycle_time_ms = 0;
  c.fsdp.unit_size = 20;  // one unit per layer, so that one is gathered while another computes
  return c;
}

}  // namespace

TEST_CASE("nccl strategies: exact strategies have ddp's bits on two devices and match one device") {
  pass_on_devices(2, [] {
    const TrainerConfig plain{.max_epochs = 2, .accumulate_grad_batches = 2};
    TrainerConfig clipped = plain;
    clipped.gradient_clip_val = 0.05;
    const Fitted ddp = fit("ddp", {plain}), alone = fit("single", {clipped});
    CHECK(distance(ddp, fit("single", {plain})) <= 1e-6);
    for (const Choice& choice : kExact) {
      CAPTURE(choice.strategy);
      CHECK(fit(choice.strategy, {with(choice, plain)}).weights == ddp.weights);
      CHECK(distance(fit(choice.strategy, {with(choice, clipped)}), alone) <= 1e-6);  // norms of shards are rounded
    }
  });
}

TEST_CASE("nccl strategies: manual steps on gradients accumulated over several backwards") {
  pass_on_devices(2, [] {
    const auto by_hand = [](const std::string& strategy) {
      manual_seed(3);
      ToyModule model({.dropout = 0});
      data::DataLoader train(toy_points(24), {.batch_size = 3, .shuffle = true, .seed = 7});
      Fabric fabric({.accelerator = "cuda", .devices = 2, .strategy = strategy, .horovod = {.scale_lr = false}});
      fabric.launch();
      auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
      int batches = 0;
      for (const Batch& b : fabric.setup_dataloaders(train)) {
        fabric.backward(cross_entropy(model(b[0]), b[1]));
        if (++batches % 2 != 0) continue;
        opt.step();
        opt.zero_grad();
      }
      CHECK(batches == 4);
      fabric.strategy().finish(model);
      return values_of(model);
    };
    const Weights ddp = by_hand("ddp"), first = by_hand(kExact.front().strategy);
    CHECK(largest_difference(first, ddp) <= 1e-6);  // ddp averages in each backward
    for (const Choice& choice : kExact) {
      CAPTURE(choice.strategy);
      CHECK(by_hand(choice.strategy) == first);
    }
  });
}

TEST_CASE("nccl strategies: three devices match one with the whole batch") {
  pass_on_devices(3, [] {
    const TrainerConfig config{.max_epochs = 2};
    const Fitted alone = fit("single", {config});
    for (const Choice& choice : kExact) {
      CAPTURE(choice.strategy);
      const Fitted got = fit(choice.strategy, {with(choice, config)});
      CHECK(got.same);
      CHECK(distance(got, alone) <= 1e-6);
    }
  });
}

TEST_CASE("nccl strategies: four devices under zero_2 and fsdp match one with the whole batch") {
  pass_on_devices(4, [] {
    const TrainerConfig config{.max_epochs = 1};
    const Fitted alone = fit("single", {config});
    for (const char* name : {"zero_2", "fsdp"}) {
      const Fitted got = fit(name, {with({name}, config)});
      CHECK(got.same);
      CHECK(distance(got, alone) <= 1e-6);
    }
  });
}

namespace {

struct Rounded : ToyModule {
  using ToyModule::ToyModule;
  Optimizers configure_optimizers() override {
    return optim::QAdam(parameters(), {.lr = 0.02, .warmup_steps = 2});
  }
};

}  // namespace

TEST_CASE("nccl strategies: bagua's lossy algorithms stay within their error bounds") {
  pass_on_devices(2, [] {
    const TrainerConfig config{.max_epochs = 2};
    const Fitted ddp = fit("ddp", {config}), bytes = fit("bagua", {with({"bagua", "bytegrad"}, config)});
    CHECK(bytes.same);
    CHECK(distance(bytes, ddp) > 0);
    CHECK(distance(bytes, ddp) <= 0.05);  // 6 steps of rate 0.1 with momentum 0.9, range 2 or less: 6 0.1 10 2 / 255
    for (const char* algorithm : {"decentralized", "low_precision_decentralized", "async"}) {
      for (const char* peers : {"all", "shift_one"}) {
        CAPTURE(algorithm);
        TrainerConfig own = with({"bagua", algorithm}, config);
        own.bagua.peers = peers;
        own.bagua.sync_interval_ms = 0;
        const double far = distance(fit("bagua", {own}), ddp);
        CHECK(far > 0);
        CHECK(far <= 0.3);}
    }
  });
}

TEST_CASE("nccl strategies: bagua/qadam is ddp's Adam while it warms up, then near it") {
  pass_on_devices(2, [] {
    for (const std::int64_t steps : {2, 6}) {
      const TrainerConfig config{.max_epochs = -1, .max_steps = steps};
      const Fitted own = fit<Rounded>("bagua", {with({"bagua", "qadam"}, config)});
      const Fitted full = fit<Rounded>("ddp", {config});
      CHECK(own.same);
      CHECK((own.weights == full.weights) == (steps == 2));
      CHECK(distance(own, full) <= 0.08);  // the length of 4 steps
    }
  });
}

namespace {

struct Normed : ToyModule {
  using ToyModule::ToyModule;
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 12);
  Tensor forward(const Tensor& x) override {
    return fc2(relu(norm(fc1(x).reshape({-1, 12, 1, 1})).reshape({-1, 12})));
  }
};

}  // namespace

TEST_CASE("nccl strategies: ddp with --sync-batchnorm matches one device with the whole batch") {
  pass_on_devices(2, [] {
    const TrainerConfig config{.max_epochs = 2, .sync_batchnorm = true};
    const Fitted together = fit<Normed>("ddp", {config}), alone = fit<Normed>("single", {config});
    CHECK(together.same);
    CHECK(distance(together, alone) <= 1e-6);
  });
}

TEST_CASE("nccl strategies: 16-mixed under zero_2, with gradients that overflow on one rank") {
  struct Overflows : ToyModule {
    using ToyModule::ToyModule;
    StepOutput training_step(const Batch& b, int index) override {
      const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
      return index == 1 && rank() == 1 ? loss * 1e38 * 1e38 : loss;
    }
  };
  pass_on_devices(2, [] {
    const TrainerConfig config{.max_epochs = 2, .precision = "16-mixed"};
    const Fitted ddp = fit<Overflows>("ddp", {config}), zero = fit<Overflows>("zero_2", {config});
    CHECK(zero.weights == ddp.weights);
    CHECK(zero.same);
    CHECK(zero.steps == ddp.steps);
    CHECK(ddp.steps == 4);  // of 6
  });
}

TEST_CASE("nccl strategies: a fit saved on two devices under zero_2 and fsdp resumes on one and on two") {
  const CommonDir dir;
  pass_on_devices(2, [&] {
    for (const std::string name : {"zero_2", "fsdp"}) {
      CAPTURE(name);
      TrainerConfig config{.max_epochs = 2};
      config.callbacks = {std::make_shared<SaveAlways>(dir.path / name)};
      const Fitted whole = fit(name, {config});
      const FitOptions second_epoch{{.max_epochs = 2}, (dir.path / name / "3").string()};
      CHECK(fit(name, second_epoch).weights == whole.weights);
      CHECK(distance(fit("single", second_epoch), whole) <= 1e-6);
    }
  });
}
