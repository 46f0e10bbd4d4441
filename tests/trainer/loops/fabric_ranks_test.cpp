// Fabric on several processes. A test case starts itself again once per rank.
#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Window {
  bool first_quiet, second_quiet;  // under no_backward_sync
};

/// Weights after steps of two micro-batches each; with "single" one process has all samples.
std::vector<std::vector<float>> in_windows(const std::string& strategy, Window window) {
  manual_seed(3);
  ToyModule model({.dropout = 0});
  const std::int64_t whole = 12, own = strategy == "single" ? whole : whole / ranks();
  data::DataLoader train(toy_points(96), {.batch_size = own, .shuffle = true, .seed = 7});
  Fabric fabric({.accelerator = "cpu", .strategy = strategy});
  fabric.launch();
  auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1, .momentum = 0.9}); });
  auto loader = fabric.setup_dataloaders(train);
  int i = 0;
  for (const Batch& b : loader) {
    const bool second = i++ % 2 != 0;
    const auto scope = fabric.no_backward_sync(second ? window.second_quiet : window.first_quiet);
    fabric.backward(cross_entropy(model(b[0]), b[1]) * 0.5);
    if (!second) continue;
    opt.step();
    opt.zero_grad();
  }
  fabric.strategy().finish(model);
  return values_of(model);
}

}  // namespace

TEST_CASE("Fabric: windows equal one process, whichever of their batches exchange gradients") {
  pass_on(3, [] {
    for (const std::string strategy : {"ddp", "zero_1", "zero_2"}) {
      const auto alone = in_windows("single", {});
      for (const Window w : {Window{false, false}, {true, false}, {false, true}, {true, true}}) {
        CAPTURE(strategy);
        CAPTURE(w.first_quiet);
        CAPTURE(w.second_quiet);
        CHECK(largest_difference(in_windows(strategy, w), alone) <= 1e-6);
      }
    }
  });
}

TEST_CASE("Fabric: under ddp a backward averages gradients, and under no_backward_sync it does not") {
  pass_on(2, [] {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    Fabric fabric({.accelerator = "cpu", .strategy = "ddp"});
    fabric.launch();
    auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
    const Batch b = toy_points(6, static_cast<std::uint64_t>(20 + rank())).get_batch(
        std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, Generator(0));
    const auto gradient_after = [&](bool without_exchange) {
      opt.zero_grad();
      const auto scope = fabric.no_backward_sync(without_exchange);
      fabric.backward(cross_entropy(model(b[0]), b[1]));
      return std::vector<std::vector<float>>{model.fc1.weight.grad().to_vector<float>()};
    };
    CHECK(same_on_all(fabric.strategy(), gradient_after(false)));
    CHECK_FALSE(same_on_all(fabric.strategy(), gradient_after(true)));
    CHECK(same_on_all(fabric.strategy(), gradient_after(false)));
  });
}

TEST_CASE("Fabric: collectives between ranks") {
  pass_on(3, [] {
    Fabric fabric({.accelerator = "cpu", .strategy = "ddp"});
    fabric.launch();
    const double own = fabric.global_rank();
    CHECK(fabric.world_size() == 3);
    CHECK(fabric.broadcast(full({2}, own), 2).to_vector<float>() == std::vector<float>{2, 2});
    CHECK(fabric.broadcast(StateMap{{"rank", own}}, 1).get<double>("rank") == 1.0);
    CHECK(fabric.all_reduce(full({1}, own)).item<double>() == 1.0);
    CHECK(fabric.all_reduce(full({1}, own), ReduceOp::max).item<double>() == 2.0);
    CHECK(fabric.all_gather(full({1}, own)).to_vector<float>() == std::vector<float>{0, 1, 2});
    CHECK_FALSE(fabric.all_gather(ones({1}).requires_grad_()).requires_grad());
    const Tensor x = full({2}, own).requires_grad_();
    square(fabric.all_gather(x, /*sync_grads=*/true)).sum().backward();
    CHECK(x.grad().to_vector<float>() == std::vector<float>(2, static_cast<float>(3 * 2 * own)));  // asked by three
    CHECK(message_of<ValueError>([&] { fabric.broadcast(x, 3); }) ==
          "[broadcast] rank 3 does not exist: the ranks are 0 to 2. Set src to one of these.");
    fabric.barrier();
  });
}

TEST_CASE("Fabric: a loop that was saved goes on with the same bits on as many ranks, each with its own dropout") {
  const CommonDir dir;
  pass_on(3, [&] {
    const auto train = [](Fabric& fabric, ToyModule& model, const OptimizerHandle& opt, std::uint64_t from) {
      for (std::uint64_t i = from; i < from + 3; ++i) {
        const Batch b = toy_points(4, 10 * i + static_cast<std::uint64_t>(rank())).get_batch(
            std::vector<std::int64_t>{0, 1, 2, 3}, Generator(0));
        opt.zero_grad();
        fabric.backward(cross_entropy(model(b[0]), b[1]));
        opt.step();
      }
    };
    const auto made = [](ToyModule& model) { return [&] { return optim::AdamW(model.parameters(), {.lr = 0.02}); }; };
    manual_seed(1);
    Fabric fabric({.accelerator = "cpu", .strategy = "ddp"});
    ToyModule model;
    auto [opt] = fabric.setup(model, made(model));
    train(fabric, model, opt, 0);
    if (rank() == 1) randn({100});  // a rank's place is its own
    fabric.save(dir.path / "ckpt", model);
    const auto random = default_generator().state();
    train(fabric, model, opt, 3);

    manual_seed(99);
    Fabric other({.accelerator = "cpu", .strategy = "ddp"});
    ToyModule again;
    auto [opt2] = other.setup(again, made(again));
    other.load(dir.path / "ckpt", again);
    CHECK(default_generator().state() == random);
    train(other, again, opt2, 3);
    CHECK(values_of(again) == values_of(model));
  });
}
