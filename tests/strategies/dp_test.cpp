// --strategy dp: one process with one replica per device matches one device on the whole batch.
#include "strategies/logged_fits.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Records the threads and numbers of samples of its steps.
struct Watched : LogsInEveryWay {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 12);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 12, 3);
  static inline std::mutex mutex;
  static inline std::multiset<std::int64_t> parts;
  static inline std::set<std::thread::id> threads;
  static void forget() {
    parts.clear();
    threads.clear();
  }

  Tensor forward(const Tensor& x) override { return fc2(tanh(fc1(x))); }
  StepOutput training_step(const Batch& b, int index) override {
    {
      const std::lock_guard lock(mutex);
      parts.insert(b.size());
      threads.insert(std::this_thread::get_id());
    }
    return LogsInEveryWay::training_step(b, index);
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.3, .momentum = 0.9}); }
};

/// 125 samples: batches of 64 and 61.
template <class Module>
FitResult trained(TrainerConfig config) {
  manual_seed(3);
  Module model;
  data::DataLoader train(toy_points(125), {.batch_size = 64, .shuffle = true, .seed = 7});
  data::DataLoader val(toy_points(61, 9), {.batch_size = 61});
  config.max_epochs = 3;
  return fit_and_predict(model, config, train, val);
}

}  // namespace

TEST_CASE("strategy dp: weights, logged values, metrics and predictions of 4 replicas match one device") {
  const FitResult one = trained<Watched>(quiet());
  CHECK(differs(one.weights, values_of(Watched()), 1e-2));  // training has changed the weights
  const std::multiset<std::int64_t> sizes = [] {
    std::multiset<std::int64_t> s;
    for (int epoch = 0; epoch < 3; ++epoch) s.insert({16, 16, 16, 16, 16, 16, 16, 13});
    return s;
  }();
  for (const bool side_by_side : {false, true}) {
    CAPTURE(side_by_side);
    Watched::forget();
    const auto config = on_replicas("dp", 4);
    equals(one, side_by_side ? trained<Rebuilt<Watched>>(config) : trained<Watched>(config));
    CHECK(Watched::parts == sizes);
    CHECK(Watched::threads.size() == (side_by_side ? 4 : 1));
  }
}

TEST_CASE("strategy dp: accumulation, clipping, bf16 and weighted losses match one device") {
  struct Tokens : Watched {
    StepOutput training_step(const Batch& b, int index) override {
      StepOutput out = Watched::training_step(b, index);
      const double tokens = (b[1] + 1).sum().item<double>();  // as many as the labels say
      const Tensor losses = cross_entropy((*this)(b[0]), b[1], {.reduction = Reduction::none});
      return StepOutput(((b[1] + 1) * losses).sum() / tokens).weight(tokens);
    }
  };
  const TrainerConfig config{.accumulate_grad_batches = 2, .gradient_clip_val = 0.02};
  equals(trained<Tokens>(quiet(config)), trained<Tokens>(on_replicas("dp", 3, config)));
  const TrainerConfig mixed{.precision = "bf16-mixed"};
  const FitResult one = trained<Watched>(quiet(mixed)), several = trained<Watched>(on_replicas("dp", 3, mixed));
  CHECK(largest_difference(one.weights, several.weights) <= 0.02);
}

TEST_CASE("strategy dp: dropout is the same from run to run, and resumed to the bit") {
  const TempDir dir;
  const auto fit = [&](const std::string& from, bool saves) {
    manual_seed(4);
    ToyModule model;
    data::DataLoader train(toy_points(40), {.batch_size = 10, .shuffle = true, .seed = 2});
    auto config = on_replicas("dp", 3, {.max_epochs = 2});
    if (saves) config.callbacks = {std::make_shared<SaveAlways>(dir.path)};
    Trainer(config).fit(model, DataModule{.train = borrowed(train)}, from);
    return values_of(model);
  };
  const auto whole = fit({}, true);
  CHECK(fit({}, false) == whole);
  CHECK(fit((dir.path / "2").string(), false) == whole);
}

TEST_CASE("strategy dp: buffers are the first replica's, also where replicas run in turn") {
  struct Normed : Watched {
    nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 12);
    Tensor forward(const Tensor& x) override {
      return fc2(norm(fc1(x).reshape({-1, 12, 1, 1})).reshape({-1, 12}));
    }
  };
  const auto buffers = [](nn::Module& m) {
    std::vector<std::vector<double>> out;
    for (const auto& [name, b] : m.named_buffers()) out.push_back(b.to(kFloat64).to_vector<double>());
    return out;
  };
  const auto fit = [&](auto& model, TrainerConfig c, std::int64_t batch) {
    data::DataLoader train(toy_points(12), {.batch_size = 12});
    auto first = data::DataLoader(toy_points(12), {.batch_size = batch});
    c.limit_train_batches = 1;
    c.max_epochs = 1;
    Trainer(c).fit(model, batch == 12 ? train : first);
    return buffers(model);
  };
  manual_seed(1);
  Normed of_first_part;
  const auto expected = fit(of_first_part, quiet(), 4);
  manual_seed(1);
  Normed in_turn;
  CHECK(fit(in_turn, on_replicas("dp", 3), 12) == expected);
  manual_seed(1);
  Rebuilt<Normed> side_by_side;
  CHECK(fit(side_by_side, on_replicas("dp", 3), 12) == expected);
}

TEST_CASE("strategy dp: training_step_end sees the extras of the whole batch, with their gradients") {
  /// Every sample shall be nearest to its own second view among all of the batch.
  struct Contrastive : Watched {
    std::vector<std::int64_t> rows;
    StepOutput training_step(const Batch& b, int) override {
      return {Tensor(), {{"first", (*this)(b[0])}, {"second", (*this)(b[0] * 0.5)}, {"size", b[0].sum()}}};
    }
    StepOutput training_step_end(const StepOutput& whole) override {
      const Tensor a = whole.extras().at("first"), b = whole.extras().at("second");
      rows.push_back(a.size(0));
      return cross_entropy(matmul(a, b.transpose(0, 1)), arange(a.size(0)));
    }
  };
  const auto fit = [](TrainerConfig c, std::vector<std::int64_t>& rows) {
    manual_seed(6);
    Contrastive model;
    data::DataLoader train(toy_points(33), {.batch_size = 17});
    c.max_epochs = 2;
    Trainer(c).fit(model, train);
    rows = model.rows;
    return values_of(model);
  };
  std::vector<std::int64_t> one_rows, rows;
  const auto one = fit(quiet(), one_rows), several = fit(on_replicas("dp", 4), rows);
  CHECK(rows == std::vector<std::int64_t>{17, 16, 17, 16});
  CHECK(rows == one_rows);
  CHECK(largest_difference(one, several) <= 1e-6);
}

TEST_CASE("strategy dp: a part without a loss is ignored, an exception in a step ends the fit") {
  struct Skips : ToyModule {
    StepOutput training_step(const Batch& b, int index) override {
      if (b[0].data<float>()[0] < -100) return {};
      if (index == 2) throw ValueError("a bad batch");
      return ToyModule::training_step(b, index);
    }
  };
  const Tensor x = full({12, 6}, 0.5);
  const Tensor poisoned = x.clone(), y = zeros({12}, {.dtype = kInt64});
  poisoned.narrow(0, 4, 4).fill_(-200);
  const auto fit = [&](const Tensor& points, TrainerConfig c) {
    manual_seed(2);
    Skips model;
    model.drop.eval();
    data::DataLoader train(data::TensorDataset({points, y.narrow(0, 0, points.size(0))}), {.batch_size = 12});
    c.max_epochs = 1;
    Trainer(c).fit(model, train);
    return values_of(model);
  };
  // All samples are one, so the mean of the other parts is that of any of them.
  manual_seed(2);
  CHECK(largest_difference(fit(poisoned, on_replicas("dp", 3)), fit(x, on_replicas("dp", 3))) <= 1e-6);
  Skips model;
  data::DataLoader train(toy_points(40), {.batch_size = 10});
  Trainer trainer(on_replicas("dp", 2, {.max_epochs = 1}));
  CHECK(message_of<ValueError>([&] { trainer.fit(model, train); }) == "a bad batch");
  CHECK(trainer.global_step() == 2);
}

TEST_CASE("strategy dp: unsupported options are refused") {
  struct Manual : ToyModule {
    Manual() { automatic_optimization = false; }
  } manual;
  data::DataLoader train(toy_points(8), {.batch_size = 4});
  CHECK(contains(message_of<UsageError>([&] { Trainer(on_replicas("dp", 2)).fit(manual, train); }),
                 "--strategy dp runs its step once per device before any backward. Use --strategy ddp"));
  CHECK(contains(message_of<UsageError>([&] { Trainer t(on_replicas("dp", 2, {.num_nodes = 2})); }),
                 "--strategy dp: it is one process, and --num-nodes is 2. Use --strategy ddp."));
  CHECK(contains(message_of<UsageError>([&] { Trainer t(on_replicas("dp", 2, {.sync_batchnorm = true})); }),
                 "--sync-batchnorm: the replicas of --strategy dp share one process"));
  nn::Linear plain(2, 2);
  Fabric fabric({.accelerator = "cpu", .devices = 2, .strategy = "dp"});
  CHECK(contains(message_of<UsageError>([&] { fabric.setup_module(plain); }), "Wrap it by distributed::DataParallel."));
  struct Ragged : ToyModule {
    Batch on_after_batch_transfer(Batch b) override {
      b.samples = 3;
      return b;
    }
  } ragged;
  CHECK(contains(message_of<UsageError>([&] { Trainer(on_replicas("dp", 2, {.max_epochs = 1})).fit(ragged, train); }),
                 "a batch says that it has 3 samples"));
}
