// docs/from_a_loop.md shows two programs; here they are compiled, and give the same weights.
#include "support/paths.h"
#include "trainer/toy.h"

#include <levin/core/io.h>

#include <iostream>
#include <sstream>

using namespace levin;
using namespace levin::test;

namespace {

struct Net : nn::Module {
  nn::Linear& fc1 = add<nn::Linear>("fc1", 6, 12);
  nn::Linear& fc2 = add<nn::Linear>("fc2", 12, 3);
  Tensor forward(const Tensor& x) override { return fc2(relu(fc1(x))); }
};

// clang-format off
// begin of the loop
void by_hand(Net& net, data::DataLoader& train, data::DataLoader& val, int epochs) {
  optim::AdamW opt(net.parameters(), {.lr = 1e-2});
  optim::StepLR scheduler(opt, {.step_size = 2, .gamma = 0.5});
  for (int epoch = 0; epoch < epochs; ++epoch) {
    net.train();
    for (const auto& [x, y] : train) {
      const Tensor loss = cross_entropy(net(x), y);
      opt.zero_grad();
      loss.backward();
      opt.step();
    }
    scheduler.step();
    net.eval();
    no_grad guard;
    double right = 0, rows = 0;
    for (const auto& [x, y] : val) {
      const auto n = static_cast<double>(x.size(0));
      right += n * accuracy(net(x), y).item<double>();
      rows += n;
    }
    std::cout << epoch << ": " << right / rows << '\n';
  }
}
// end of the loop

// begin of the module
struct Lit : LevinModule {
  Net& net = add<Net>("net");                                          // 1. the network, as it was
  StepOutput training_step(const Batch& b, int) override {             // 2. what happened to a batch
    const Tensor loss = cross_entropy(net(b[0]), b[1]);
    log("train_loss", loss, {.prog_bar = true});
    return loss;
  }
  void validation_step(const Batch& b, int) override {                 // 3. what was measured
    log("val_acc", accuracy(net(b[0]), b[1]), {.prog_bar = true});
  }
  Optimizers configure_optimizers() override {                         // 4. optimizer and scheduler
    return Optimizers(optim::AdamW(net.parameters(), {.lr = 1e-2}))
        .schedule([](auto& opt) { return optim::StepLR(opt, {.step_size = 2, .gamma = 0.5}); });
  }
};

void by_trainer(Lit& model, data::DataLoader& train, data::DataLoader& val, TrainerConfig config) {
  Trainer(config).fit(model, train, val);                              // 5. the loop
}
// end of the module

// begin of the names
struct Named : LevinModule {
  Net& net = add<Net>("net");
  StepOutput training_step(const Batch& b, int) override {             // a dictionary, by key
    return cross_entropy(net(b["x"]), b["label"]);
  }
  void validation_step(const Batch& b, int, int dataloader_idx) override {  // several loaders, in turn
    log("val_acc", accuracy(net(b["x"]), b["label"]));                 // val_acc/dataloader_idx_0, ...
    if (dataloader_idx == 1) log("largest", b["x"].max(), {.add_dataloader_idx = false});
  }
  Optimizers configure_optimizers() override {                         // several schedulers, whose factors multiply
    return Optimizers(optim::AdamW(net.parameters(), {.lr = 1e-2}))
        .schedule([](auto& opt) { return optim::LinearLR(opt, {.total_iters = 5}); }, {.interval = Interval::step})
        .schedule([](auto& opt) { return optim::ReduceLROnPlateau(opt); }, {.monitor = "val_acc/dataloader_idx_0"});
  }
};

Trainer::Results by_name(Named& model, data::DataLoader& train, data::DataLoader& clean, data::DataLoader& noisy,
                         TrainerConfig config) {
  Trainer trainer(config);
  trainer.fit(model, train, Loaders{clean, noisy});
  return trainer.validate(model, Loaders{clean, noisy});               // the metrics of each loader
}
// end of the names
// clang-format on

std::string passage_between(const std::string& text, const std::string& begin, const std::string& end,
                            std::size_t after = 0) {
  const std::size_t from = text.find(begin, after) + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

struct NamedPoints : data::Dataset {
  explicit NamedPoints(std::int64_t n) : points(toy_points(n)) {}
  data::TensorDataset points;
  std::int64_t size() const override { return points.size(); }
  Sample get(std::int64_t i, Generator& rng) const override {
    const auto [x, y] = points.get(i, rng);
    return Sample::dict({{"x", x}, {"label", y}});
  }
};

}  // namespace

TEST_CASE("the page on loops shows dictionaries, several loaders and several schedulers") {
  const std::string page = io::read_text(source_dir() / "docs/from_a_loop.md");
  const std::string source = io::read_text(source_dir() / "tests/trainer/loops/migration_page_test.cpp");
  CHECK(passage_between(page, "```cpp\n", "```", page.find("Sample::dict")) ==
        passage_between(source, "// begin of the names\n", "// end of the names"));
  manual_seed(5);
  Named model;
  data::DataLoader train(NamedPoints(30), {.batch_size = 4}), a(NamedPoints(9), {.batch_size = 3}), b(NamedPoints(6));
  const auto results = by_name(model, train, a, b, quiet({.max_epochs = 2}));
  REQUIRE(results.size() == 2);
  CHECK(results[0].contains("val_acc/dataloader_idx_0"));
  CHECK(results[1].contains("val_acc/dataloader_idx_1"));
  CHECK(results[0].contains("largest"));
}

TEST_CASE("the page on loops shows two programs that are compiled here and give the same bits") {
  const std::string page = io::read_text(source_dir() / "docs/from_a_loop.md");
  const std::string source = io::read_text(source_dir() / "tests/trainer/loops/migration_page_test.cpp");
  const std::string loop = passage_between(source, "// begin of the loop\n", "// end of the loop");
  CHECK(passage_between(page, "```cpp\n", "```") == loop);
  CHECK(passage_between(page, "```cpp\n", "```", page.find("Five steps")) ==
        passage_between(source, "// begin of the module\n", "// end of the module"));

  data::DataLoader train(toy_points(30), {.batch_size = 4, .shuffle = true, .seed = 6});
  data::DataLoader same(toy_points(30), {.batch_size = 4, .shuffle = true, .seed = 6});
  data::DataLoader val(toy_points(8, 9), {.batch_size = 3});
  manual_seed(5);
  Net net;
  std::ostringstream said;
  std::streambuf* const former = std::cout.rdbuf(said.rdbuf());
  by_hand(net, train, val, 3);
  std::cout.rdbuf(former);
  manual_seed(5);
  Lit model;
  double last = -1;
  auto config = quiet({.max_epochs = 3});
  config.callbacks = {
      LambdaCallback({.on_validation_end = [&](RunContext& run) { last = run.metrics.find("val_acc").value_or(-1); }})};
  by_trainer(model, same, val, config);
  CHECK(values_of(model.net) == values_of(net));
  std::ostringstream expected;
  expected << "2: " << last << '\n';
  CHECK(said.str().ends_with(expected.str()));
}
