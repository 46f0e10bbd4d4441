// toggle_model(sync_grad) on several processes. A test case starts itself again once per rank.
#include <levin/distributed/process_group.h>

#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

constexpr auto kAllReduce = distributed::Collective::Kind::all_reduce;

Batch points_of_rank(int step) {
  return toy_points(6, static_cast<std::uint64_t>(10 * step + rank()))
      .get_batch(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}, Generator(0));
}

std::vector<std::vector<float>> gradients_of(const nn::Module& m) {
  std::vector<std::vector<float>> all;
  for (const Parameter& p : m.parameters()) all.push_back(p.grad().to_vector<float>());
  return all;
}

/// Two optimizers stepped by hand, in windows of two batches; every batch clips, so far that nothing is clipped.
struct TwoByHand : LevinModule {
  TwoByHand() { automatic_optimization = false; }
  nn::Linear& a = add<nn::Linear>("a", 6, 6);
  nn::Linear& b = add<nn::Linear>("b", 6, 1);
  distributed::ProcessGroup* group = nullptr;  // null with one process
  bool clips = true;
  std::vector<std::int64_t> quiet_scopes, loud_scopes;  // all-reduces in each
  std::vector<bool> agree;                              // gradients of all ranks, before a step
  Strategy* strategy = nullptr;

  std::int64_t count() const { return group ? group->begun(kAllReduce) : 0; }
  StepOutput training_step(const Batch& batch, int index) override {
    const bool steps = index % 2 == 1;
    for (const OptimizerHandle& opt : optimizers<2>()) {
      const auto only = opt.toggle_optimizer(/*sync_grad=*/steps);
      const std::int64_t before = count();
      manual_backward(softplus(-b(a(batch[0]))).mean() / 2.0);
      if (clips) clip_gradients(opt, 1e9);
      (steps ? loud_scopes : quiet_scopes).push_back(count() - before);
      if (!steps) continue;
      if (strategy && clips) agree.push_back(same_on_all(*strategy, gradients_of(opt.index() == 0 ? a : b)));
      opt.step();
      opt.zero_grad();
    }
    return {};
  }
  Optimizers configure_optimizers() override {
    return Optimizers(optim::SGD(a.parameters(), {.lr = 0.1, .momentum = 0.9}))
        .add(optim::AdamW(b.parameters(), {.lr = 0.01}));
  }
};

std::vector<std::vector<float>> by_hand(bool alone, bool clips, const std::string& precision = "32-true") {
  manual_seed(3);
  TwoByHand model;
  model.clips = clips;
  data::DataLoader train(toy_points(48), {.batch_size = alone ? 12 : 12 / ranks(), .shuffle = true, .seed = 7});
  TrainerConfig config = quiet({.max_epochs = 3, .precision = precision});
  if (!alone) {
    config.strategy = "ddp";
    config.accelerator = "cpu";
  }
  Trainer trainer(config);
  if (!alone) {
    model.strategy = &trainer.fabric().strategy();
    model.group = model.strategy->process_group();
    REQUIRE(model.group != nullptr);
  }
  trainer.fit(model, train);
  if (!alone) {
    CHECK(model.quiet_scopes == std::vector<std::int64_t>(12, 0));
    REQUIRE(model.loud_scopes.size() == 12);
    for (const std::int64_t n : model.loud_scopes) CHECK((n > 0) == clips);  // else step() exchanges
    CHECK(model.agree == std::vector<bool>(clips ? 12 : 0, true));
    CHECK(same_on_all(*model.strategy, values_of(model)));
  }
  return values_of(model);
}

}  // namespace

TEST_CASE("ddp/no_allreduce_when_toggled: none in scopes without sync_grad, and gradients agree where it is set") {
  pass_on(3, [] {
    for (const bool clips : {false, true}) {
      CAPTURE(clips);
      CHECK(largest_difference(by_hand(true, clips), by_hand(false, clips)) <= 1e-6);
    }
    by_hand(false, false, "16-mixed");
  });
}

TEST_CASE("toggle_model without sync_grad: Fabric's backward exchanges nothing, and the next one averages all") {
  pass_on(2, [] {
    for (const bool quiet_first : {false, true}) {
      CAPTURE(quiet_first);
      manual_seed(3);
      ToyModule model({.dropout = 0});
      Fabric fabric({.accelerator = "cpu", .strategy = "ddp"});
      auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
      auto& group = *fabric.strategy().process_group();
      const auto backward = [&](int step) {
        const Batch batch = points_of_rank(step);
        const std::int64_t before = group.begun(kAllReduce);
        fabric.backward(cross_entropy(model(batch[0]), batch[1]));
        return group.begun(kAllReduce) - before;
      };
      {
        const auto only = opt.toggle_model(/*sync_grad=*/!quiet_first);
        CHECK((backward(0) == 0) == quiet_first);
        CHECK(same_on_all(fabric.strategy(), gradients_of(model)) != quiet_first);
      }
      CHECK(backward(1) > 0);
      CHECK(same_on_all(fabric.strategy(), gradients_of(model)));
      const auto windows = gradients_of(model);
      opt.step();
      CHECK(same_on_all(fabric.strategy(), values_of(model)));
      // The same window, exchanged as a whole.
      opt.zero_grad();
      manual_seed(3);
      model.load_state_dict(ToyModule({.dropout = 0}).state_dict());
      {
        const auto scope = fabric.no_backward_sync();
        backward(0);
        backward(1);
      }
      opt.clip_gradients(1e9);
      CHECK(largest_difference(gradients_of(model), windows) <= 1e-6);
    }
  });
}

TEST_CASE("toggle_model without sync_grad: a step in it is this rank's own, and later gradients agree again") {
  pass_on(2, [] {
    for (const std::string precision : {"32-true", "16-mixed"}) {
      CAPTURE(precision);
      manual_seed(3);
      ToyModule model({.dropout = 0});
      Fabric fabric({.accelerator = "cpu", .strategy = "ddp", .precision = precision});
      auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
      auto& group = *fabric.strategy().process_group();
      const auto step = [&](int i) {
        const Batch batch = points_of_rank(i);
        opt.zero_grad();
        fabric.backward(fabric.autocast([&] { return cross_entropy(model(batch[0]), batch[1]); }));
        opt.step();
      };
      step(0);
      CHECK(same_on_all(fabric.strategy(), values_of(model)));
      const std::int64_t before = group.begun(kAllReduce);
      {
        const auto only = opt.toggle_model(/*sync_grad=*/false);
        step(1);
        const auto inner = opt.toggle_model(/*sync_grad=*/true);  // the outer scope still holds
        step(2);
      }
      CHECK(group.begun(kAllReduce) == before);
      CHECK_FALSE(same_on_all(fabric.strategy(), values_of(model)));
      step(3);
      CHECK(group.begun(kAllReduce) > before);
      CHECK(same_on_all(fabric.strategy(), gradients_of(model)));
    }
  });
}

TEST_CASE("ddp: gradients that a backward adds to clipped ones are averaged with them") {
  pass_on(2, [] {
    manual_seed(3);
    ToyModule model({.dropout = 0});
    Fabric fabric({.accelerator = "cpu", .strategy = "ddp"});
    auto [one, two] = fabric.setup<2>(model, [&] {
      return Optimizers(optim::SGD(model.fc1.parameters(), {.lr = 0.1}))
          .add(optim::SGD(model.fc2.parameters(), {.lr = 0.1}));
    });
    for (int i = 0; i < 2; ++i) {
      const Batch batch = points_of_rank(i);
      fabric.backward(cross_entropy(model(batch[0]), batch[1]));
      if (i == 0) one.clip_gradients(1e9);
    }
    one.step();
    two.step();
    CHECK(same_on_all(fabric.strategy(), gradients_of(model)));
    CHECK(same_on_all(fabric.strategy(), values_of(model)));
  });
}

TEST_CASE("toggle_model without sync_grad: a step is refused where ranks divide the optimizer's state") {
  pass_on(2, [] {
    ToyModule model({.dropout = 0});
    Fabric fabric({.accelerator = "cpu", .strategy = "zero_1"});
    auto [opt] = fabric.setup(model, [&] { return optim::SGD(model.parameters(), {.lr = 0.1}); });
    const Batch batch = points_of_rank(0);
    const auto only = opt.toggle_model(/*sync_grad=*/false);
    fabric.backward(cross_entropy(model(batch[0]), batch[1]));
    CHECK(message_of<UsageError>([&, &o = opt] { o.step(); }) ==
          "[toggle_model] this step has no sync_grad, but --strategy zero_1 needs the gradients of all ranks in every "
          "step. Set sync_grad to true for the batches that step.");
  });
}
