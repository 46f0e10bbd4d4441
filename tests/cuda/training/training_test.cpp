// Training with reduced precision on a CUDA device compared with the CPU: skipped windows, closeness to float32, the
// end of a diverging run.

#include "cuda/training/training.h"
#include "support/comparison.h"
#include "support/tolerance.h"

#include <cmath>

using namespace levin;
using namespace levin::test;

namespace {

const Device kCuda = cuda(0);

struct Run {
  double loss = 0;  ///< mean over the last epoch
  DType weight, norm_weight, logits;
  std::vector<std::vector<float>> weights;
};

/// Trains with 6 batches of 16 points per epoch.
Run train(const std::string& precision, const std::string& accelerator, std::uint64_t seed, std::int64_t epochs) {
  manual_seed(seed);
  PointNet model;
  data::DataLoader loader(toy_points(96, seed), {.batch_size = 16, .shuffle = true, .seed = seed});
  Trainer trainer(quiet({.max_epochs = epochs, .precision = precision, .accelerator = accelerator}));
  trainer.fit(model, loader);
  CHECK(trainer.state().optimizer_steps.at(0) == 6 * epochs);
  return {trainer.metrics().results(Split::train).at("loss"), model.fc1.weight.dtype(), model.norm.weight.dtype(),
          model.logits_type, values_of(model)};
}

}  // namespace

TEST_CASE("each precision uses its types on cuda") {
  struct Row {
    const char* name;
    DType weight, norm_weight, logits;
  };
  for (const Row& r : {Row{"16-mixed", kFloat32, kFloat32, kHalf}, Row{"bf16-mixed", kFloat32, kFloat32, kBFloat16},
                       Row{"16-true", kHalf, kHalf, kHalf}, Row{"16-o2", kHalf, kFloat32, kHalf}}) {
    INFO(r.name);
    const Run run = train(r.name, "cuda", 1, 1);
    CHECK(run.weight == r.weight);
    CHECK(run.norm_weight == r.norm_weight);
    CHECK(run.logits == r.logits);
    CHECK(std::isfinite(run.loss));
  }
}

TEST_CASE("an overflow halves the scale, changes no weight, moves no scheduler, and training continues") {
  for (const std::string precision : {"16-mixed", "16-o2"})
    for (const Device device : {kCpu, kCuda}) {
      INFO(precision, " on ", to_string(device));
      StepByStep<> run(precision, device, {.gradient_clip_val = 1.0});
      run.model->overflow_at = {2, 3};
      for (int i = 0; i < 2; ++i) run.step();
      run.runner->settle(run.state);
      CHECK(run.scale() == 65536.0);
      const auto weights = values_of(*run.model);
      const auto masters = run.precision->weights(*run.model).at("fc1.weight").to_vector<float>();
      const StateDict optimizer = run.optimizers.optimizer().state_dict();
      const auto moment = optimizer.at("state.fc1.weight.exp_avg").to_vector<float>();
      const double rate = run.rate();
      for (int i = 0; i < 2; ++i) run.step();
      run.runner->settle(run.state);
      CHECK(run.scale() == 16384.0);
      CHECK(values_of(*run.model) == weights);
      CHECK(run.precision->weights(*run.model).at("fc1.weight").to_vector<float>() == masters);
      CHECK(optimizer.at("state.fc1.weight.exp_avg").to_vector<float>() == moment);
      CHECK(run.rate() == rate);
      CHECK(run.model->scheduler_steps == 2);
      for (int i = 0; i < 2; ++i) run.step();
      run.runner->settle(run.state);
      CHECK(run.scale() == 16384.0);
      CHECK(values_of(*run.model) != weights);
      CHECK(run.state.global_step == 6);
      CHECK(run.state.optimizer_steps.at(0) == 4);
      CHECK(run.model->scheduler_steps == 4);
      CHECK(run.rate() == approx(0.02 * std::pow(0.97, 4), {.relative = 1e-12}));
      CHECK(run.optimizers.optimizer().state_dict().at("state.fc1.weight.step").item<double>() == 4);
      for (const auto& [name, t] : run.model->state_dict()) CHECK_MESSAGE(isfinite(t).all().item<bool>(), name);
    }
}

TEST_CASE("the step after an overflow has the learning rate of the skipped step") {
  for (const Device device : {kCpu, kCuda}) {
    StepByStep<> hurt("16-mixed", device), whole("16-mixed", device);
    hurt.model->overflow_at = {1};
    for (const std::uint64_t seed : {1u, 2u, 3u}) hurt.step(seed);  // the second step is skipped
    for (const std::uint64_t seed : {1u, 3u}) whole.step(seed);
    CHECK(values_of(*hurt.model) == values_of(*whole.model));
  }
}

TEST_CASE("a module that steps its optimizers itself is not asked to after an overflow") {
  struct Own : PointNet {
    int own_steps = 0;
    void optimizer_step(optim::Optimizer& optimizer, const Tensor&) override {
      ++own_steps;
      optimizer.step();
    }
  };
  StepByStep<Own> run("16-mixed", kCuda);
  run.model->overflow_at = {0, 2};
  for (int i = 0; i < 4; ++i) run.step();
  run.runner->settle(run.state);
  CHECK(run.model->own_steps == 2);
  CHECK(run.state.optimizer_steps.at(0) == 2);
  for (const auto& [name, t] : run.model->state_dict()) CHECK_MESSAGE(isfinite(t).all().item<bool>(), name);
}

TEST_CASE("a module that skips the base method once gets an error if that did harm") {
  struct Fickle : PointNet {
    void optimizer_step(optim::Optimizer& optimizer, const Tensor& found_inf) override {
      if (steps == 2)
        optimizer.step();
      else
        LevinModule::optimizer_step(optimizer, found_inf);
    }
  };
  StepByStep<Fickle> run("16-mixed", kCuda);
  run.model->overflow_at = {1};
  run.step();
  CHECK_THROWS_WITH_AS(run.step(), doctest::Contains("but not in step 2"), UsageError);
}

// The worst of the three seeds in the emulator: 16-mixed and 16-o2 differ by 0.01 % from float32's loss, bf16-mixed by
// 0.16 %.
TEST_CASE("on cuda reduced precision ends within 2 % of float32's loss for three seeds") {
  for (const std::uint64_t seed : {1u, 2u, 3u}) {
    const double single = train("32-true", "cuda", seed, 4).loss;
    CHECK(single < 0.7);  // it starts at ln 3
    for (const std::string precision : {"16-mixed", "bf16-mixed", "16-o2"}) {
      const double loss = train(precision, "cuda", seed, 4).loss;
      INFO("seed ", seed, " ", precision);
      CHECK(loss == approx(single, {.relative = 0.02}));
    }
  }
}

TEST_CASE("cuda and cpu give the same training up to rounding") {
  for (const std::string precision : {"16-mixed", "16-o2"}) {
    const Run on_cpu = train(precision, "cpu", 2, 2), on_cuda = train(precision, "cuda", 2, 2);
    INFO(precision);
    // Products of up to 16 terms are summed in float32 in another order, at most 16 eps off, and rounded to float16
    // once. Some round the other way, by one part in 2048. AdamW passes that on to a step of 0.02, 12 times.
    CHECK(largest_difference(on_cpu.weights, on_cuda.weights) <= 12 * 0.02 / 2048);
    CHECK(on_cuda.loss == approx(on_cpu.loss, {.relative = 1e-4}));
  }
}

TEST_CASE("on cuda a loss that stays infinite ends the run with the parameter's name") {
  for (const std::string precision : {"16-mixed", "16-o2"}) {
    INFO(precision);
    StepByStep<> run(precision, kCuda, {.gradient_clip_val = 1.0}, /*scheduled=*/false);
    run.step();  // only fc2's gradients will be infinite
    for (std::int64_t i = 1; i < 400; ++i) run.model->overflow_at.push_back(i);
    run.model->fc1.weight.requires_grad_(false);
    const std::string text = message_of<LossDiverged>([&] {
      for (int i = 0; i < 399; ++i) run.step();
    });
    CHECK_MESSAGE(contains(text, "steps in a row had gradients that are not finite"), text);
    CHECK_MESSAGE(contains(text, "the first is that of \"fc1.bias\""), text);
    CHECK(run.model->steps >= 21);
    CHECK(run.state.optimizer_steps.at(0) <= 1);
  }
}

TEST_CASE("on cuda twenty skipped steps end the run at once if the host has to read the flag anyway") {
  StepByStep<> run("16-mixed", kCuda);  // the scheduler reads every flag
  for (std::int64_t i = 1; i < 40; ++i) run.model->overflow_at.push_back(i);
  const std::string text = message_of<LossDiverged>([&] {
    for (int i = 0; i < 40; ++i) run.step();
  });
  CHECK_MESSAGE(contains(text, "20 steps in a row"), text);
  CHECK(run.model->steps == 21);
}
