// The recipes of docs/from_pytorch.md for parts of a program: data, operations, callbacks, metrics, schedulers.
#include "programs/from_pytorch.h"

#include "support/paths.h"
#include "trainer/toy.h"

#include <levin/autograd/gradcheck.h>
#include <levin/core/io.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

using namespace levin;
using levin::test::Lit, levin::test::quiet, levin::test::toy_points, levin::test::values_of;

namespace {

// clang-format off
// page begins
struct Squares : data::Dataset {
  std::int64_t size() const override { return 100; }                      // __len__
  Sample get(std::int64_t i, Generator& rng) const override {             // __getitem__
    const Tensor x = tensor({static_cast<double>(i) / 100});              // (1,), float32
    return {x + 0.01 * randn({1}, {.generator = &rng}), square(x)};
  }
};

data::DataLoader squares(int workers) {
  return data::DataLoader(Squares(), {.batch_size = 16, .shuffle = true, .num_workers = workers});
}
// page ends

// page begins
struct Cube : Function<Cube> {
  static Tensor forward(Context& ctx, const Tensor& x) {
    ctx.save(x);                                                          // ctx.save_for_backward(x)
    return x * x * x;
  }
  static Tensor backward(Context& ctx, const Tensor& g) {
    return g * 3 * square(ctx.saved(0));                                  // x, = ctx.saved_tensors
  }
};

bool cube_is_right(const Tensor& x) {                                     // x: float64, requires grad
  const auto f = [](const std::vector<Tensor>& in) { return std::vector<Tensor>{Cube::apply(in[0])}; };
  return gradcheck(f, {x}).empty() && gradgradcheck(f, {x}).empty();      // a text says where gradients differ
}
// page ends

// page begins
struct StopAt : Callback {
  explicit StopAt(double goal_) : goal(goal_) {}
  double goal, best = 0;

  void on_validation_end(RunContext& run) override {                      // trainer and pl_module are in `run`
    if (run.sanity_checking) return;
    best = std::max(best, run.metrics.find("val_acc").value_or(0));       // trainer.callback_metrics
    if (best >= goal) run.stop.request("val_acc has reached its goal");   // trainer.should_stop = True
  }
  std::string state_key() const override { return "StopAt"; }
  StateMap state() const override { return {{"best", best}}; }            // state_dict
  void load_state(const StateMap& s) override { best = s.get<double>("best"); }
};

std::shared_ptr<StopAt> train_until(double goal, Lit& model, data::DataLoader& train, data::DataLoader& val,
                                    TrainerConfig config) {
  const auto stop = std::make_shared<StopAt>(goal);                       // or by value: {StopAt(0.9)}
  config.callbacks = {stop};
  Trainer(config).fit(model, train, val);
  return stop;
}
// page ends

// page begins
struct Within : metrics::Metric {
  explicit Within(double tolerance_) : Metric("Within"), tolerance(tolerance_) {
    add_state("hits", tensor(0));                                         // dist_reduce_fx="sum" is the default
    add_state("total", tensor(0));
  }
  double tolerance;

  void add(const Tensor& predicted, const Tensor& target) override {      // update: adds to the states
    const Tensor hit = (predicted - target).abs() <= tolerance;
    gather("hits", hit.sum());
    gather("total", ones_like(hit, {.dtype = kInt64}).sum());
  }
  Tensor result() const override { return state("hits").to(kFloat64) / state("total"); }  // compute
};

struct Regression : LevinModule {
  nn::Linear& fc = add<nn::Linear>("fc", 1, 1);
  Within& near = add_metric<Within>("near", 0.1);
  StepOutput training_step(const Batch& b, int) override { return mse_loss(fc(b[0]), b[1]); }
  void validation_step(const Batch& b, int) override {
    near.update(fc(b[0]), b[1]);
    log("near", near);                                                    // computed and reset once per epoch
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.1}); }
};
// page ends

// page begins
struct WarmUp : optim::Scheduler {
  WarmUp(optim::Optimizer& opt, std::int64_t steps_) : Scheduler(opt), steps(steps_) { start(); }
  std::int64_t steps;
  double lr(std::size_t group) const override {                           // get_lr, for one parameter group
    const auto step = static_cast<double>(last_epoch() + 1), warm = static_cast<double>(steps);
    return base_lr(group) * std::min(step / warm, std::sqrt(warm / step));
  }
};

struct Scheduled : Lit {
  Optimizers configure_optimizers() override {
    return Optimizers(optim::AdamW(parameters(), {.lr = 1e-2}))
        .schedule([](auto& opt) { return WarmUp(opt, 4); }, {.interval = Interval::step});
  }
};
// page ends

// page begins
struct FineTuned : Lit {
  FineTuned() { net.fc1.requires_grad_(false); }                          // for p in net.fc1.parameters(): ...
};
// page ends
// clang-format on

/// Returns the lines between the markers of a source, one text for each pair of markers.
std::vector<std::string> marked_parts(const std::string& file) {
  std::vector<std::string> parts;
  std::istringstream lines(io::read_text(test::source_dir() / "tests/programs" / file));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line == "// page begins") {
      inside = true;
      parts.emplace_back();
    } else if (line == "// page ends") {
      inside = false;
    } else if (inside) {
      parts.back() += line + "\n";
    }
  }
  return parts;
}

double mean_of(const std::vector<float>& values) {
  double sum = 0;
  for (const float v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

}  // namespace

TEST_CASE("from_pytorch.md shows the code of these tests") {
  std::vector<std::string> expected;
  for (const char* file : {"from_pytorch.h", "from_pytorch_test.cpp", "from_pytorch_training_test.cpp"})
    for (const std::string& part : marked_parts(file)) expected.push_back(part);
  CHECK(expected.size() == 11);

  const std::string page = io::read_text(test::source_dir() / "docs/from_pytorch.md"), open = "```cpp\n";
  std::vector<std::string> shown;
  for (std::size_t at = 0; (at = page.find(open, at)) != std::string::npos;) {
    at += open.size();
    shown.push_back(page.substr(at, page.find("```", at) - at));
  }
  CHECK(shown.size() == expected.size());
  for (std::size_t i = 0; i < std::min(shown.size(), expected.size()); ++i) CHECK(shown[i] == expected[i]);
}

TEST_CASE("from_pytorch.md: a custom dataset gives the same batches for any number of workers") {
  std::vector<std::vector<float>> seen[2];
  for (const int workers : {0, 2}) {
    manual_seed(3);
    auto loader = squares(workers);
    CHECK(loader.size() == 7);
    for (const auto& [x, y] : loader) {
      CHECK(x.dtype() == kFloat32);
      CHECK(x.sizes() == y.sizes());
      seen[workers / 2].push_back(x.to_vector<float>());
    }
  }
  CHECK(seen[0] == seen[1]);
  CHECK(seen[0].front().size() == 16);
  CHECK(seen[0].back().size() == 4);
  double sum = 0;
  for (const auto& batch : seen[0]) sum += mean_of(batch) * static_cast<double>(batch.size());
  CHECK(std::abs(sum / 100 - 0.495) < 0.01);  // every sample once, with little noise
}

TEST_CASE("from_pytorch.md: the custom Function passes gradcheck, and a wrong one does not") {
  manual_seed(1);
  const Tensor x = randn({5}, {.dtype = kFloat64}).requires_grad_();
  CHECK(cube_is_right(x));
  struct Wrong : Function<Wrong> {
    static Tensor forward(Context& ctx, const Tensor& t) {
      ctx.save(t);
      return t * t * t;
    }
    static Tensor backward(Context& ctx, const Tensor& g) { return g * 2 * square(ctx.saved(0)); }
  };
  CHECK_FALSE(
      gradcheck([](const std::vector<Tensor>& in) { return std::vector<Tensor>{Wrong::apply(in[0])}; }, {x}).empty());
}

TEST_CASE("from_pytorch.md: a callback stops training at its goal and is saved with its state") {
  manual_seed(2);
  data::DataLoader train(toy_points(96), {.batch_size = 8, .shuffle = true}), val(toy_points(30, 9), {.batch_size = 8});
  Lit model;
  const auto stop = train_until(0.75, model, train, val, quiet({.max_epochs = 200}));
  CHECK(stop->best >= 0.75);
  CHECK(train.epoch() < 200);
  StopAt copy(1);
  copy.load_state(stop->state());
  CHECK(copy.best == stop->best);
  const auto never = train_until(2, model, train, val, quiet({.max_epochs = 3}));
  CHECK(never->best < 2);
}

TEST_CASE("from_pytorch.md: the metric does not depend on how the data is cut into batches") {
  manual_seed(4);
  data::DataLoader train(Squares(), {.batch_size = 10});
  Regression model;
  Trainer trainer(quiet({.max_epochs = 2}));
  trainer.fit(model, train);
  const auto [x, y] = Squares().all();
  no_grad guard;
  const double expected = ((model.fc(x) - y).abs() <= 0.1).to(kFloat64).mean().item<double>();
  CHECK(expected > 0);
  CHECK(expected < 1);
  for (const std::int64_t size : {3, 100}) {
    data::DataLoader val(data::TensorDataset({x, y}), {.batch_size = size});
    CHECK(trainer.validate(model, val).at(0).at("near") == expected);
  }
  Within left(0.1), right(0.1);  // as two ranks
  left.update(model.fc(x(Slice(0, 30))), y(Slice(0, 30)));
  right.update(model.fc(x(Slice(30, 100))), y(Slice(30, 100)));
  left.merge(right);
  CHECK(left.value() == expected);
}

TEST_CASE("from_pytorch.md: the scheduler sets the rates of its formula") {
  manual_seed(5);
  Scheduled model;
  data::DataLoader train(toy_points(40), {.batch_size = 4});
  std::vector<double> rates;
  auto config = quiet({.max_epochs = 1});
  config.callbacks = {LambdaCallback({.on_train_batch_start = [&](RunContext& run, const Batch&, int) {
    rates.push_back(run.learning_rates.at(0));
  }})};
  Trainer(config).fit(model, train);
  REQUIRE(rates.size() == 10);
  for (int i = 0; i < 10; ++i) {
    const double expected = 1e-2 * (i < 4 ? (i + 1) / 4.0 : std::sqrt(4.0 / (i + 1)));
    CHECK(std::abs(rates[static_cast<std::size_t>(i)] - expected) < 1e-15);
  }
}

TEST_CASE("from_pytorch.md: the weights of a frozen layer do not change") {
  manual_seed(6);
  FineTuned model;
  const auto frozen = values_of(model.net.fc1), trained = values_of(model.net.fc2);
  data::DataLoader train(toy_points(40), {.batch_size = 4});
  Trainer(quiet({.max_epochs = 2})).fit(model, train);
  CHECK(values_of(model.net.fc1) == frozen);
  CHECK(values_of(model.net.fc2) != trained);
  CHECK_FALSE(model.net.fc1.weight.grad().defined());
}
