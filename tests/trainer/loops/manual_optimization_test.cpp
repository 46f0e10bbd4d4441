// Several optimizers stepped by training_step itself.
#include <limits>

#include "support/comparison.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

/// A generator that moves points and a critic that tells them from real ones: what a GAN does, in small.
struct Duel : LevinModule {
  Duel() { automatic_optimization = false; }
  nn::Linear& g = add<nn::Linear>("g", 6, 6);
  nn::Linear& d = add<nn::Linear>("d", 6, 1);
  std::vector<bool> last;
  int accumulate = 1;
  double clip = 0;
  double norm_at_step = 0;
  bool scheduled = false;

  Tensor critic_loss(const Tensor& real, const Tensor& fake) {
    return softplus(-d(real)).mean() + softplus(d(fake.detach())).mean();
  }
  StepOutput training_step(const Batch& b, int index) override {
    auto [g_opt, d_opt] = optimizers<2>();
    last.push_back(is_last_batch());
    const bool steps = (index + 1) % accumulate == 0 || is_last_batch();
    const Tensor fake = g(b[0]);
    {
      const auto only = d_opt.toggle_model(/*sync_grad=*/steps);
      manual_backward(critic_loss(b[0], fake) / accumulate);
      if (clip > 0 && steps) clip_gradients(d_opt, clip);
      if (steps) {
        norm_at_step = optim::clip_grad_norm_(d.parameters(), 1e9).item<double>();
        d_opt.step();
        d_opt.zero_grad();
      }
    }
    {
      const auto only = g_opt.toggle_model(steps);
      manual_backward(softplus(-d(fake)).mean() / accumulate);
      if (steps) {
        g_opt.step();
        g_opt.zero_grad();
      }
    }
    log_dict({{"fake", fake.mean()}, {"top", fake.max()}}, {.prog_bar = true});
    return {};
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::SGD(g.parameters(), {.lr = 0.1, .momentum = 0.9}))
        .add(optim::AdamW(d.parameters(), {.lr = 0.01}));
  }
};

/// The same steps with nothing between.
void duel_by_hand(Duel& m, data::DataLoader& loader, int epochs, int accumulate) {
  optim::SGD g_opt(m.g.parameters(), {.lr = 0.1, .momentum = 0.9});
  optim::AdamW d_opt(m.d.parameters(), {.lr = 0.01});
  for (int e = 0; e < epochs; ++e) {
    int index = 0;
    for (const auto& batch : loader) {
      const bool steps = (index + 1) % accumulate == 0 || index + 1 == loader.size();
      ++index;
      const Tensor fake = m.g(batch[0]);
      (m.critic_loss(batch[0], fake) / accumulate).backward();
      if (steps) {
        d_opt.step();
        d_opt.zero_grad();
      }
      for (const Tensor& p : m.d.parameters()) p.requires_grad_(false);
      (softplus(-m.d(fake)).mean() / accumulate).backward();
      for (const Tensor& p : m.d.parameters()) p.requires_grad_(true);
      if (steps) {
        g_opt.step();
        g_opt.zero_grad();
      }
    }
  }
}

TrainerConfig epochs(std::int64_t n) { return quiet({.max_epochs = n}); }

}  // namespace

// Manual optimization is the loop by hand, to the bit.
TEST_CASE("gan/tail_batch_steps") {
  for (const int accumulate : {1, 2}) {
    INFO("accumulate ", accumulate);
    manual_seed(3);
    Duel a;
    manual_seed(3);
    Duel b;
    a.accumulate = b.accumulate = accumulate;
    data::DataLoader one(toy_points(20), {.batch_size = 4, .shuffle = true, .seed = 1});
    data::DataLoader two(toy_points(20), {.batch_size = 4, .shuffle = true, .seed = 1});
    Trainer trainer(epochs(3));
    trainer.fit(a, one);
    duel_by_hand(b, two, 3, accumulate);
    CHECK(values_of(a) == values_of(b));
    CHECK(trainer.global_step() == 15);  // calls of training_step
    const std::int64_t steps = accumulate == 1 ? 15 : 9;  // five batches: two windows and a tail
    CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{steps, steps});
    REQUIRE(a.last.size() == 15);
    for (std::size_t i = 0; i < 15; ++i) CHECK(a.last[i] == (i % 5 == 4));
  }
}

TEST_CASE("gan/grad_isolation") {
  struct Watch : Duel {
    int seen = 0;
    StepOutput training_step(const Batch& b, int) override {
      auto [g_opt, d_opt] = optimizers<2>();
      g_opt.zero_grad();
      d_opt.zero_grad();
      {
        const auto only = d_opt.toggle_model();
        CHECK_FALSE(g.parameters()[0].requires_grad());
        manual_backward(critic_loss(b[0], g(b[0])));
        CHECK_FALSE(g.parameters()[0].grad().defined());
        CHECK(d.parameters()[0].grad().defined());
      }
      const auto before = d.parameters()[0].grad().to_vector<float>();
      {
        const auto only = g_opt.toggle_optimizer();
        manual_backward(softplus(-d(g(b[0]))).mean());
        CHECK(g.parameters()[0].grad().defined());
      }
      CHECK(d.parameters()[0].grad().to_vector<float>() == before);
      CHECK(d.parameters()[0].requires_grad());
      ++seen;
      return {};
    }
  } model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  Trainer(epochs(1)).fit(model, loader);
  CHECK(model.seen == 2);
}

TEST_CASE("optim/toggle_restores_on_throw") {
  struct Thrower : Duel {
    StepOutput training_step(const Batch&, int) override {
      d.parameters()[1].requires_grad_(false);  // the program's own choice stays
      try {
        const auto only = optimizers<2>()[0].toggle_model();
        CHECK_FALSE(d.parameters()[0].requires_grad());
        throw std::runtime_error("in between");
      } catch (const std::runtime_error&) {
      }
      CHECK(d.parameters()[0].requires_grad());
      CHECK_FALSE(d.parameters()[1].requires_grad());
      d.parameters()[1].requires_grad_(true);
      return {};
    }
  } model;
  data::DataLoader loader(toy_points(4), {.batch_size = 4});
  Trainer(epochs(1)).fit(model, loader);
}

TEST_CASE("manual clipping sees gradients at their true scale, and a window that overflowed is left out") {
  manual_seed(3);
  Duel plain, clipped;
  clipped.clip = 1e-3;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  for (Duel* m : {&plain, &clipped}) {
    auto config = epochs(1);
    config.precision = "16-mixed";
    Trainer(config).fit(*m, loader);
  }
  CHECK(clipped.norm_at_step == approx(1e-3, {.relative = 0.01}));  // 65536 times that were it scaled
  CHECK(plain.norm_at_step > 10);  // not clipped, and not yet brought back to scale

  struct Overflow : Duel {
    StepOutput training_step(const Batch& b, int index) override {
      auto [g_opt, d_opt] = optimizers<2>();
      g_opt.zero_grad();
      d_opt.zero_grad();
      manual_backward(critic_loss(b[0], g(b[0])) * (index == 1 ? 1e38 : 0.01));
      d_opt.step();
      return {};
    }
  } model;
  data::DataLoader four(toy_points(16), {.batch_size = 4});
  auto config = epochs(1);
  config.precision = "16-mixed";
  Trainer trainer(config);
  trainer.fit(model, four);
  CHECK(trainer.global_step() == 4);
  CAPTURE(trainer.state().optimizer_steps[1]);
  CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{0, 3});
}

TEST_CASE("schedulers of manual optimization step only on request") {
  struct Scheduled : Duel {
    StepOutput training_step(const Batch& b, int) override {
      auto [g_opt, d_opt] = optimizers<2>();
      const Tensor loss = d_opt.step([&] {
        d_opt.zero_grad();
        const Tensor l = critic_loss(b[0], g(b[0]));
        manual_backward(l);
        return l;
      });
      CHECK(loss.numel() == 1);
      rates.push_back(d_opt.param_groups()[0]["lr"]);
      if (is_last_batch()) lr_schedulers<1>()[0].step();
      return {};
    }
    Optimizers configure_optimizers() override {
      return Optimizers(optim::SGD(g.parameters(), {.lr = 0.1}))
          .add(optim::SGD(d.parameters(), {.lr = 0.5}))
          .schedule([](auto& o) { return optim::StepLR(o, {.step_size = 1, .gamma = 0.5}); });
    }
    std::vector<double> rates;
  } model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  Trainer(epochs(3)).fit(model, loader);
  CHECK(model.rates == std::vector<double>{0.5, 0.5, 0.25, 0.25, 0.125, 0.125});
}

TEST_CASE("options that manual optimization does not support are refused") {
  Duel model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  const auto refusal = [&](TrainerConfig config) {
    return message_of<UsageError>([&] { Trainer(quiet(std::move(config))).fit(model, loader); });
  };
  CHECK(contains(refusal({.max_epochs = 1, .gradient_clip_val = 1.0}), "gradient_clip_val 1 is for automatic"));
  CHECK(contains(refusal({.max_epochs = 1, .accumulate_grad_batches = 2}), "accumulate_grad_batches 2 is for"));
  CHECK(contains(refusal({.max_epochs = 1, .precision = "16-o2"}), "weights for one optimizer, and there are 2"));
  CHECK(contains(message_of<UsageError>([&] { model.manual_backward(ones({})); }), "during fit"));

  struct Miscounted : Duel {
    StepOutput training_step(const Batch&, int) override {
      optimizers<3>();
      return {};
    }
  } three;
  CHECK(contains(message_of<UsageError>([&] { Trainer(epochs(1)).fit(three, loader); }),
                 "3 are requested, but configure_optimizers returned 2"));
  Duel automatic;
  automatic.automatic_optimization = true;
  CHECK(contains(message_of<UsageError>([&] { Trainer(epochs(1)).fit(automatic, loader); }),
                 "returned 2 optimizers, and automatic optimization steps one"));
}

TEST_CASE("a manual run goes on from its checkpoint, with both optimizers") {
  const TempDir folder;
  const auto run = [&](std::int64_t n, const std::string& ckpt) {
    manual_seed(3);
    Duel model;
    data::DataLoader loader(toy_points(20), {.batch_size = 4, .shuffle = true, .seed = 1});
    auto config = epochs(n);
    config.callbacks = {ModelCheckpoint({.dirpath = folder.path, .every_n_epochs = 1})};
    Trainer trainer(config);
    trainer.fit(model, DataModule{.train = borrowed(loader)}, ckpt);
    CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{5 * n, 5 * n});
    return std::pair(values_of(model), trainer.checkpoint_path("last"));
  };
  const auto [whole, _] = run(4, "");
  const auto [half, last] = run(2, "");
  CHECK(half != whole);
  CHECK(run(4, last).first == whole);
}

TEST_CASE("of several manual optimizers any overflow lowers the scale, whichever steps last") {
  struct Overflow : Duel {
    std::size_t bad = 0;
    std::vector<double> scales;
    void on_before_backward(const Tensor& loss) override { scales.push_back(loss.item<double>()); }
    StepOutput training_step(const Batch& b, int index) override {
      auto handles = optimizers<2>();
      for (const std::size_t i : {0, 1}) {
        // Its scaled value is the scale, which would overflow as a gradient in float16.
        const Tensor one = (i == 0 ? g(b[0]) : d(b[0])).mean().to(kFloat32) * 0.0 + 1.0;
        handles[i].zero_grad();
        manual_backward(index == 0 && i == bad ? one * std::numeric_limits<double>::quiet_NaN() : one);
        handles[i].step();
      }
      return {};
    }
  };
  for (const std::size_t bad : {0, 1}) {
    manual_seed(3);
    Overflow model;
    model.bad = bad;
    data::DataLoader loader(toy_points(8), {.batch_size = 4});
    auto config = epochs(1);
    config.precision = "16-mixed";
    Trainer trainer(config);
    trainer.fit(model, loader);
    REQUIRE(model.scales.size() == 4);
    CHECK(trainer.state().optimizer_steps == std::vector<std::int64_t>{bad == 0 ? 1 : 2, bad == 0 ? 2 : 1});
    CHECK(model.scales[2] == 32768.0);
    CHECK(model.scales[3] == 32768.0);
  }
}
