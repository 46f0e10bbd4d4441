// With each stateful callback, a run interrupted at any save point and resumed ends with the bits of an uninterrupted
// one.
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Backbone : nn::Module {
  nn::Linear& fc = add<nn::Linear>("fc", 6, 8);
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 8);
  nn::Dropout& drop = add<nn::Dropout>("drop", 0.25);
  Tensor forward(const Tensor& x) override {
    return drop(relu(norm(fc(x).reshape({x.sizes()[0], 8, 1, 1})).flatten(1)));
  }
};

struct Net : LevinModule {
  Backbone& backbone = add<Backbone>("backbone");
  nn::Linear& head = add<nn::Linear>("head", 8, 3);
  bool head_only = false;
  std::vector<double> losses;

  Tensor forward(const Tensor& x) override { return head(backbone(x)); }
  StepOutput training_step(const Batch& b, int) override {
    const Tensor loss = cross_entropy((*this)(b[0]), b[1]);
    losses.push_back(loss.item<double>());
    log("train_loss", loss);
    return loss;
  }
  void validation_step(const Batch& b, int) override { log("val_loss", cross_entropy((*this)(b[0]), b[1])); }
  Optimizers configure_optimizers() override {
    auto given = head_only ? BaseFinetuning::trainable_parameters(*this, head) : parameters();
    return Optimizers(optim::AdamW(given, {.lr = 0.02})).schedule([](auto& opt) {
      return optim::StepLR(opt, {.step_size = 1, .gamma = 0.8});
    });
  }
};

struct Outcome {
  std::vector<std::vector<float>> weights;
  std::vector<double> losses;
  std::map<std::string, double> validation;
  StateMap state;
  std::map<std::string, std::vector<float>> tensors;
  GeneratorState rng;
};

using Make = std::function<CallbackPtr()>;
struct Setup {
  Make make;
  bool head_only = false;
  std::int64_t accumulate = 1;
  std::string precision = "32-true";
};

Outcome run(const Setup& s, const std::shared_ptr<SaveAlways>& policy, const std::string& ckpt = {}) {
  manual_seed(ckpt.empty() ? 3 : 999);  // all that counts comes from the checkpoint
  Net model;
  model.head_only = s.head_only;
  data::DataLoader train(toy_points(14), {.batch_size = 4, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(6, 9), {.batch_size = 4});
  auto config = quiet(
      {.max_epochs = 3, .num_sanity_val_steps = 0, .accumulate_grad_batches = s.accumulate, .precision = s.precision});
  const CallbackPtr callback = s.make();
  config.callbacks = {callback};
  if (policy) config.callbacks.push_back(policy);
  Trainer trainer(config);
  trainer.fit(model, train, val, ckpt);
  Outcome out{values_of(model),  model.losses, trainer.metrics().results(Split::validation),
              callback->state(), {},           default_generator().state()};
  for (const auto& [name, t] : callback->tensors()) out.tensors[name] = t.to(kFloat32).to_vector<float>();
  return out;
}

/// Four batches, a validation and an end of each of three epochs.
void check_resumes_everywhere(const Setup& s) {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  const Outcome whole = run(s, policy);
  CHECK(policy->count == 18);
  CHECK(run(s, nullptr).weights == whole.weights);
  for (int i = 0; i < policy->count; ++i) {
    INFO("save point ", i);
    const Outcome again = run(s, nullptr, (folder.path / std::to_string(i)).string());
    REQUIRE(again.losses.size() <= whole.losses.size());
    const std::vector<double> tail(whole.losses.end() - std::ssize(again.losses), whole.losses.end());
    CHECK(again.losses == tail);
    CHECK(again.weights == whole.weights);
    CHECK(again.validation == whole.validation);
    CHECK(again.state == whole.state);
    CHECK(again.tensors == whole.tensors);
    CHECK(again.rng == whole.rng);
  }
}

}  // namespace

TEST_CASE("callbacks/resume_ema") {
  check_resumes_everywhere({[] { return EMA({.decay = 0.9}); }});
  check_resumes_everywhere(
      {[] { return EMA({.decay = 0.9, .update_every_n_steps = 2, .update_starting_at_epoch = 1}); },
       /*head_only=*/false, /*accumulate=*/2, "16-o2"});
}

TEST_CASE("callbacks/resume_swa") {
  check_resumes_everywhere({[] {
    return StochasticWeightAveraging({.swa_lrs = {0.005}, .swa_epoch_start = std::int64_t{2}, .annealing_epochs = 2});
  }});
}

TEST_CASE("callbacks/resume_backbone_finetuning") {
  const Make make = [] { return BackboneFinetuning({.unfreeze_backbone_at_epoch = 1}); };
  check_resumes_everywhere({make, /*head_only=*/true});
  check_resumes_everywhere({make, /*head_only=*/true, /*accumulate=*/3, "16-o2"});
}

TEST_CASE("callbacks/resume_gradient_accumulation_scheduler") {
  check_resumes_everywhere({[] { return GradientAccumulationScheduler({{0, 1}, {1, 3}, {2, 2}}); }});
}

TEST_CASE("callbacks/resume_timer") {
  // A clock that moves by one with each training batch: what a resumed run has counted is what the whole one has.
  struct Ticking : Timer {
    explicit Ticking(std::shared_ptr<double> t)
        : Timer({.duration = std::chrono::hours(1), .verbose = false, .clock = [t] { return *t; }}),
          now(std::move(t)) {}
    std::shared_ptr<double> now;
    void on_train_batch_start(RunContext&, const Batch&, int) override { *now += 1; }
  };
  check_resumes_everywhere({[] { return Ticking(std::make_shared<double>(50.0)); }});
}

TEST_CASE("callbacks/resume_model_pruning") {
  check_resumes_everywhere({[] {
    return ModelPruning({.amount = 0.3, .make_pruning_permanent = false, .use_lottery_ticket_hypothesis = true});
  }});
  check_resumes_everywhere(
      {[] { return ModelPruning({.pruning_fn = PruningFn::random_unstructured, .make_pruning_permanent = false}); }});
}

TEST_CASE("callbacks/resume_spike_detection") {
  check_resumes_everywhere({[] { return SpikeDetection({.window = 3, .rtol = 100.0}); }});
}

TEST_CASE("callbacks/resume_needs_the_network: a group of parameters that the network lacks is named") {
  const TempDir folder;
  const auto policy = std::make_shared<SaveAlways>(folder.path);
  run({[] { return BackboneFinetuning({.unfreeze_backbone_at_epoch = 1}); }, true}, policy);
  struct Renamed : BackboneFinetuning {
    using BackboneFinetuning::BackboneFinetuning;
    void load_state(const StateMap& s) override {
      StateMap changed = s;
      changed.set("group/0/1", std::vector<std::string>{"backbone.gone"});
      BackboneFinetuning::load_state(changed);
    }
  };
  const auto text = message_of<StateError>([&] {
    run({[] { return Renamed({.unfreeze_backbone_at_epoch = 1}); }, true}, nullptr, (folder.path / "17").string());
  });
  CHECK_MESSAGE(contains(text, "backbone.gone"), text);
}
