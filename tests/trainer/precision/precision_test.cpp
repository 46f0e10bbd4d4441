// Mixed and pure 16-bit training: types, skipped windows, and closeness to float32.
#include <levin/autograd/autocast.h>
#include <levin/autograd/gradcheck.h>
#include <levin/kernels/cuda.h>
#include <levin/trainer/precision.h>

#include "support/comparison.h"
#include "trainer/toy.h"

#include <limits>

using namespace levin;
using namespace levin::test;

namespace {

/// Remembers the types that the steps saw; one step's loss can be made infinite.
struct Watched : ToyModule {
  using ToyModule::ToyModule;
  DType weight_type = kInt8, logits_type = kInt8, loss_type = kInt8;
  int step = 0, overflow_at = -1;

  StepOutput training_step(const Batch& b, int) override {
    const Tensor logits = (*this)(b[0]);
    Tensor loss = cross_entropy(logits, b[1]);
    weight_type = fc1.weight.dtype();
    logits_type = logits.dtype();
    loss_type = loss.dtype();
    losses.push_back(loss.item<double>());
    if (step++ == overflow_at) loss = loss * std::numeric_limits<double>::infinity();
    return loss;
  }
};

struct Result {
  double loss;
  std::int64_t steps, optimizer_steps;
};

Result train(Watched& model, const std::string& precision, std::int64_t epochs, std::uint64_t seed = 2) {
  manual_seed(seed);
  data::DataLoader loader(toy_points(96, seed), {.batch_size = 16, .shuffle = true, .seed = seed});
  Trainer trainer(quiet({.max_epochs = epochs, .precision = precision}));
  trainer.fit(model, loader);
  double last = 0;
  for (std::size_t i = model.losses.size() - 6; i < model.losses.size(); ++i) last += model.losses[i] / 6;
  return {last, trainer.global_step(), trainer.state().optimizer_steps.at(0)};
}

}  // namespace

TEST_CASE("each precision has its types, and the short names are Lightning's") {
  struct Row {
    const char *name, *full;
    DType weight, logits, loss;
  };
  for (const Row& r :
       {Row{"32", "32-true", kFloat32, kFloat32, kFloat32}, Row{"64", "64-true", kFloat64, kFloat64, kFloat64},
        Row{"16", "16-mixed", kFloat32, kHalf, kFloat32}, Row{"bf16", "bf16-mixed", kFloat32, kBFloat16, kFloat32},
        Row{"16-true", "16-true", kHalf, kHalf, kHalf}, Row{"bf16-true", "bf16-true", kBFloat16, kBFloat16, kBFloat16},
        Row{"16-o2", "16-o2", kHalf, kHalf, kFloat32}}) {
    INFO(r.name);
    CHECK(make_precision(r.name)->name() == r.full);
    Watched model;
    train(model, r.name, 1);
    CHECK(model.weight_type == r.weight);
    CHECK(model.logits_type == r.logits);
    CHECK(model.loss_type == r.loss);
    CHECK_FALSE(autocast_enabled());
  }
  CHECK_THROWS_WITH_AS(make_precision("fp16"), doctest::Contains("--precision fp16: did you mean 16-mixed? There are"),
                       UsageError);
  CHECK_THROWS_WITH_AS(make_precision("bfloat16"), doctest::Contains("did you mean bf16-mixed?"), UsageError);
  CHECK_THROWS_WITH_AS(make_precision("16-o3"),
                       "--precision 16-o3: there are 32-true, 64-true, 16-mixed, bf16-mixed, 16-true, bf16-true and "
                       "16-o2 (in short 32, 64, 16 and bf16 for the first four). Use one of them.",
                       UsageError);
}

TEST_CASE("precision/fp64_gradcheck: the whole mlp, loss and all, at 1e-6") {
  manual_seed(3);
  ToyModule mlp({.dropout = 0.0});
  const auto precision = make_precision("64-true");
  precision->setup(mlp);
  const Batch batch = precision->convert(Batch{randn({5, 6}), randint(0, 3, {5})});
  CHECK(batch[0].dtype() == kFloat64);
  std::vector<Tensor> leaves = {batch[0].detach().requires_grad_()};
  for (const auto& p : mlp.parameters()) leaves.push_back(p);
  const auto loss = [&](const std::vector<Tensor>& in) {  // the mlp with its weights as arguments
    const auto scope = precision->step_scope();
    CHECK(zeros({1}).dtype() == kFloat64);  // tensors created in a step have its type too
    const Tensor hidden = relu(linear(in[0], in[1], in[2]));
    return std::vector<Tensor>{cross_entropy(linear(hidden, in[3], in[4]), batch[1])};
  };
  CHECK(loss(leaves)[0].item<double>() == cross_entropy(mlp(batch[0]), batch[1]).item<double>());
  CHECK(gradcheck(loss, leaves, {.eps = 1e-6, .atol = 1e-6, .rtol = 1e-6}) == "");
  CHECK(zeros({1}).dtype() == kFloat32);
}

TEST_CASE("precision/default_is_exact_f32") {
  CHECK(TrainerConfig().precision == "32-true");
  CHECK_FALSE(cuda::allow_tf32());
  // Products keep all 24 bits: TF32 and the 16-bit types would round the last ones away.
  struct Exact : ToyModule {
    StepOutput training_step(const Batch& b, int i) override {
      const float last_bit = 1.f + 0x1p-23f;
      const Tensor product = matmul(full({4, 4}, last_bit), eye(4));
      CHECK(product.dtype() == kFloat32);
      CHECK(product.to_vector<float>() == full({4, 4}, last_bit).to_vector<float>());
      CHECK(fc1.weight.dtype() == kFloat32);
      CHECK(b[0].dtype() == kFloat32);
      CHECK_FALSE(autocast_enabled());
      return ToyModule::training_step(b, i);
    }
  } model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  Trainer(quiet({.max_epochs = 1})).fit(model, loader);
  CHECK(model.losses.size() == 2);
}

TEST_CASE("amp/bf16_has_no_scaler") {
  const auto bf16 = make_precision("bf16-mixed"), half = make_precision("16-mixed");
  const Tensor loss = full({1}, 3.f).sum();
  CHECK(bf16->scale(loss).item<float>() == 3.f);
  CHECK(half->scale(loss).item<float>() == 3.f * 65536.f);
  const Tensor w = ones({2}).requires_grad_();
  w.set_grad(full({2}, std::numeric_limits<float>::infinity()));
  CHECK_FALSE(bf16->unscale({Parameter("w", w)}).defined());  // gradients are not checked for infinities
  CHECK(half->unscale({Parameter("w", w)}).item<float>() != 0.f);
  CHECK(bf16->state().values().empty());
  CHECK_FALSE(half->state().values().empty());
  // A run's backward sees the loss as the step gave it.
  struct Losses : Callback {
    void on_before_backward(RunContext& run, const Tensor& seen) override {
      CHECK(seen.item<double>() == static_cast<ToyModule&>(run.module).losses.back());
    }
  };
  ToyModule model;
  data::DataLoader loader(toy_points(8), {.batch_size = 4});
  auto config = quiet({.max_epochs = 1, .precision = "bf16-mixed"});
  config.callbacks = {Losses()};
  Trainer(config).fit(model, loader);
  CHECK(model.losses.size() == 2);
}

TEST_CASE("amp/loss_curve_vs_f32: mixed precision ends within 2 % of float32's loss, over three seeds") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const auto loss = [&](const char* precision) {
      manual_seed(seed);
      Watched model({.dropout = 0.0});
      return train(model, precision, 12, seed).loss;
    };
    const double single = loss("32-true");
    CHECK(single < 0.9);  // it starts at ln 3
    CHECK(loss("16-mixed") == approx(single, {.relative = 0.02}));
    CHECK(loss("bf16-mixed") == approx(single, {.relative = 0.02}));
    CHECK(loss("16-o2") == approx(single, {.relative = 0.02}));
  }
}

TEST_CASE("an overflow skips the window and halves the scale, and training recovers") {
  manual_seed(1);
  Watched whole({.dropout = 0.0}), hurt({.dropout = 0.0});
  hurt.load_state_dict(whole.state_dict());
  hurt.overflow_at = 4;
  const Result a = train(whole, "16-mixed", 12), b = train(hurt, "16-mixed", 12);
  CHECK(a.steps == 72);
  CHECK(a.optimizer_steps == 72);
  CHECK(b.steps == 72);
  CHECK(b.optimizer_steps == 71);
  CHECK(b.loss == approx(a.loss, {.relative = 0.25}));
  for (const auto& [name, t] : hurt.state_dict()) CHECK_MESSAGE(isfinite(t).all().item<bool>(), name);
}

TEST_CASE("a loss that stays infinite ends the run with the parameter's name") {
  struct Diverging : ToyModule {
    StepOutput training_step(const Batch& b, int) override {
      return cross_entropy((*this)(b[0]), b[1]) * std::numeric_limits<double>::infinity();
    }
  } model;
  const std::string text = message_of<LossDiverged>([&] {
    data::DataLoader loader(toy_points(96), {.batch_size = 4});
    Trainer(quiet({.max_epochs = 2, .precision = "16-mixed"})).fit(model, loader);
  });
  CHECK_MESSAGE(contains(text, "20 steps in a row had gradients that are not finite"), text);
  CHECK_MESSAGE(contains(text, "\"fc1.weight\""), text);
}
