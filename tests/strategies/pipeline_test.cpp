// --strategy pipeline: ranks hold the layers of one network, and match one process on the whole batch.
#include "strategies/pipelines.h"

using namespace levin;
using namespace levin::test;

TEST_CASE("strategy pipeline: weights, logged values, metrics and predictions on 2 to 4 ranks match one process") {
  const auto body = [] {
    const FitResult one = staged_fit("single"), several = staged_fit("pipeline");
    equals(one, several);
    manual_seed(3);
    CHECK(differs(one.weights, values_of(StagedModule()), 1e-2));  // training has changed the weights
    Fabric fabric({.accelerator = "cpu", .strategy = "pipeline"});
    CHECK(same_on_all(fabric.strategy(), several.weights));
    CHECK(same_on_all(fabric.strategy(), {several.predictions}));
  };
  in_turn({{2, body}, {3, body}, {4, body}});
}

TEST_CASE("strategy pipeline: accumulation, clipping, schedules, AdamW and a manual balance match one process") {
  const auto body = [] {
    const TrainerConfig config{.accumulate_grad_batches = 2, .gradient_clip_val = 0.05};
    for (const bool use_sgd : {true, false}) {
      const StagedOptions options{.use_sgd = use_sgd, .schedules = true};
      TrainerConfig cut = config;
      cut.pipeline.micro_batches = 3;
      cut.pipeline.balance = ranks() == 2 ? "7,2" : "1,1,7";
      equals(staged_fit("single", config, options), staged_fit("pipeline", cut, options));}
  };
  in_turn({{2, body}, {3, body}});
}

TEST_CASE("strategy pipeline: weighted losses, and extras") {
  struct Tokens : StagedModule {
    using StagedModule::StagedModule;
    StepOutput training_step(const Batch& b, int) override {
      const Tensor scores = net(b[0]);
      const double tokens = (b[1] + 1).sum().item<double>();  // as many as the labels say
      const Tensor losses = cross_entropy(scores, b[1], {.reduction = Reduction::none});
      return StepOutput(((b[1] + 1) * losses).sum() / tokens, {{"scores", scores}}).weight(tokens);
    }
  };
  /// The rows of the extras on rank zero.
  struct Rows : Callback {
    explicit Rows(std::vector<std::int64_t>& r) : rows(&r) {}
    std::vector<std::int64_t>* rows;
    void on_train_batch_end(RunContext&, const StepOutput& out, const Batch&, int) override {
      if (!out.extras().empty()) rows->push_back(out.extras().at("scores").size(0));
    }
  };
  pass_on(2, [] {
    const TrainerConfig config{.accumulate_grad_batches = 2, .gradient_clip_val = 0.05};
    const auto one = staged_fit<Tokens>("single", config);
    std::vector<std::int64_t> rows;
    TrainerConfig watched = config;
    watched.callbacks = {Rows(rows)};
    equals(one, staged_fit<Tokens>("pipeline", watched));
    const std::vector<std::int64_t> batches = {16, 16, 16, 13, 16, 16, 16, 13};
    CHECK(rows == (rank() == 0 ? batches : std::vector<std::int64_t>()));

  });
}

TEST_CASE("strategy pipeline: a part without a loss is ignored") {
  struct Skips : StagedModule {
    using StagedModule::StagedModule;
    StepOutput training_step(const Batch& b, int index) override {
      const StepOutput out = StagedModule::training_step(b, index);
      return b[0].data<float>()[0] < -100 ? StepOutput() : out;
    }
  };
  pass_on(2, [] {
    const Tensor x = full({12, 6}, 0.5), poisoned = x.clone();
    poisoned.narrow(0, 4, 4).fill_(-200);
    const auto fit = [](const Tensor& points) {
      manual_seed(2);
      Skips model;
      const Tensor y = zeros({12}, {.dtype = kInt64});
      data::DataLoader train(data::TensorDataset({points, y}), {.batch_size = 12});
      Trainer(with_strategy("pipeline", {.max_epochs = 3, .pipeline = {.micro_batches = 3}})).fit(model, train);
      return values_of(model);
    };
    // All samples are one, so the mean of the other parts is that of any of them.
    CHECK(largest_difference(fit(poisoned), fit(x)) <= 1e-6);
    CHECK(contains(message_of<UsageError>([&] { fit(full({12, 6}, -200.0)); }), "returned no loss for a batch"));
  });
}

TEST_CASE("strategy pipeline: bf16 and loss scaling, with a window whose gradients overflow in one stage") {
  struct Overflows : StagedModule {
    using StagedModule::StagedModule;
    StepOutput training_step(const Batch& b, int index) override {
      const StepOutput out = StagedModule::training_step(b, index);
      return index == 1 ? StepOutput(out.loss() * 1e30) : out;
    }
  };
  pass_on(3, [] {
    TrainerConfig mixed{.precision = "bf16-mixed"};
    equals(staged_fit("single", mixed), staged_fit("pipeline", mixed), 0.02);
    mixed.precision = "64-true";
    equals(staged_fit("single", mixed), staged_fit("pipeline", mixed), 1e-7);
    mixed.precision = "16-mixed";
    mixed.pipeline.balance = "1,1,7";  // the second stage has no parameters
    const auto one = staged_fit<Overflows>("single", mixed), several = staged_fit<Overflows>("pipeline", mixed);
    CHECK(largest_difference(one.weights, several.weights) <= 0.02);
    CHECK(differs(one.weights, staged_fit("single", mixed).weights, 0.02));  // windows were left out
  });
}

TEST_CASE("strategy pipeline: layers behind the network are trained, buffers and frozen layers in front are common") {
  struct Between : StagedModule {
    using StagedModule::StagedModule;
    nn::Linear& front = add<nn::Linear>("front", 6, 6);
    nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 6);
    nn::Linear& head = add<nn::Linear>("head", 3, 3);
    Between(StagedOptions o) : StagedModule(o) { front.requires_grad_(false), norm.requires_grad_(false); }
    nn::Sequential* pipeline_module() override { return &net; }
    Tensor forward(const Tensor& x) override {
      const Tensor ready = norm(front(x).reshape({-1, 6, 1, 1})).reshape({-1, 6});
      return head(net(ready));
    }
    StepOutput training_step(const Batch& b, int) override { return cross_entropy((*this)(b[0]), b[1]); }
    void validation_step(const Batch& b, int) override { log("val_loss", cross_entropy((*this)(b[0]), b[1])); }
  };
  in_turn({{3, [] {
              const TrainerConfig whole{.gradient_clip_val = 0.1, .pipeline = {.micro_batches = 1}};
              equals(staged_fit<Between>("single", whole), staged_fit<Between>("pipeline", whole));
            }}});
}

TEST_CASE("strategy pipeline: a rank has its stage's weights and state alone; GradientNormMonitor sees all") {
  struct Held : Callback {
    std::int64_t parameters = 0, state = 0;
    void on_train_batch_end(RunContext& run, const StepOutput&, const Batch&, int) override {
      parameters = state = 0;
      for (const auto& [name, p] : run.module.named_parameters())
        parameters += static_cast<std::int64_t>(p.storage()->bytes() / sizeof(float));
      for (const auto& [name, t] : run.optimizers->optimizer().state_dict())
        if (name.starts_with("state.") && !name.ends_with(".step")) state += t.numel();
    }
  };
  pass_on(3, [] {
    const auto held = std::make_shared<Held>();
    TrainerConfig config{.log_every_n_steps = 1};
    config.callbacks = {GradientNormMonitor({.per_parameter = true})};
    const auto one = staged_fit("single", config, {.use_sgd = false});
    config.callbacks.push_back(held);
    const auto several = staged_fit("pipeline", config, {.use_sgd = false});
    equals(one, several);
    const std::int64_t own = std::vector<std::int64_t>{115, 130, 84}[static_cast<std::size_t>(rank())];
    const std::int64_t others = rank() == 0 ? 4 : 6;  // tensors
    CHECK(held->parameters == own + others);
    CHECK(held->state == 2 * own);
  });
}

TEST_CASE("strategy pipeline: training_step draws the same numbers on all ranks, whatever the stages draw") {
  /// Mixes inputs and targets by one random share, which the first stage's rank and the last one's must agree on.
  struct Mixes : StagedModule {
    using StagedModule::StagedModule;
    std::vector<float> drawn;
    StepOutput training_step(const Batch& b, int) override {
      const Tensor share = rand({1});
      drawn.push_back(share.item<float>());
      return cross_entropy(net(b[0] * share), b[1]);
    }
    void on_train_batch_end(const StepOutput&, const Batch&, int) override { drawn.push_back(rand({1}).item<float>()); }
  };
  pass_on(3, [] {
    manual_seed(static_cast<std::uint64_t>(10 + rank()));
    Mixes model({.dropout = 0.5});
    data::DataLoader train(toy_points(61), {.batch_size = 16, .seed = 7});
    Trainer trainer(with_strategy("pipeline", {.max_epochs = 2}));
    trainer.fit(model, train);
    StateMap own;
    own.set("drawn", std::vector<double>(model.drawn.begin(), model.drawn.end()));
    Fabric fabric({.accelerator = "cpu", .strategy = "pipeline"});
    const auto all = fabric.strategy().gather(own);
    CHECK(all[0] == all[2]);
    CHECK(all[1].get<std::vector<double>>("drawn").size() == 8);
    auto numbers = all[0].get<std::vector<double>>("drawn");
    CHECK(numbers.size() == 8 * 5);
    std::ranges::sort(numbers);
    CHECK(std::ranges::adjacent_find(numbers) == numbers.end());
  });
}

TEST_CASE("strategy pipeline: batches that are dictionaries give the bits of those that are lists") {
  struct NamedPoints : data::Dataset {
    data::TensorDataset points = toy_points(37);
    std::int64_t size() const override { return points.size(); }
    Sample get(std::int64_t i, Generator& rng) const override {
      const auto [x, y] = points.get(i, rng);
      return Sample::dict({{"input", Sample::dict({{"x", x}})}, {"y", y}});
    }
  };
  struct Named : StagedModule {
    StepOutput training_step(const Batch& b, int index) override {
      const Tensor x = b.contains("y") ? b.part("input")["x"] : b[0];
      return StagedModule::training_step({{x, b[1]}}, index);
    }
  };
  pass_on(2, [] {
    const auto fit = [](data::DataLoader train) {
      manual_seed(3);
      Named model;
      Trainer(with_strategy("pipeline", {.max_epochs = 2})).fit(model, train);
      return values_of(model);
    };
    const data::DataLoaderOptions options{.batch_size = 16, .shuffle = true, .seed = 7};
    CHECK(fit(data::DataLoader(NamedPoints(), options)) == fit(data::DataLoader(toy_points(37), options)));
  });
}
