// The Trainer on several devices, one process each: NCCL reduces gradients, and the host exchanges other messages. A
// test case starts itself again once per rank, where its body runs.
#include <csignal>

#include "nccl/device_fits.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Returns the weights after a fit on all ranks, or on one CPU with the whole batch.
std::vector<std::vector<float>> trained(const TrainerConfig& c, bool alone) {
  manual_seed(3);
  ToyModule model({.dropout = 0, .use_sgd = true});
  data::DataLoader train(toy_points(48), {.batch_size = alone ? 12 : 12 / ranks(), .shuffle = true, .seed = 7});
  Trainer trainer(alone ? quiet(c) : on_devices("ddp", c));
  trainer.fit(model, train);
  if (!alone) {
    CHECK(trainer.fabric().strategy().device() == cuda(rank()));
    CHECK(std::string(std::getenv("NCCL_ALGO")) == (c.nccl_algo == "tree" ? "allreduce:tree" : "Ring"));
    CHECK(same_on_all(trainer.fabric().strategy(), values_of(model)));
  }
  return values_of(model);
}

void equals_one_rank(const TrainerConfig& c) {
  TrainerConfig one = c;
  one.accelerator = "cpu";
  CHECK(largest_difference(trained(one, true), trained(c, false)) <= 2e-6);
}

}  // namespace

TEST_CASE("nccl trainer: two ranks match one with the whole batch, also with accumulation and clipping") {
  pass_on_devices(2, [] {
    equals_one_rank({.max_epochs = 2});
    equals_one_rank({.max_epochs = 2, .accumulate_grad_batches = 2, .gradient_clip_val = 0.05});
  });
}

TEST_CASE("nccl trainer: tree all-reduce") {
  pass_on_devices(3, [] { equals_one_rank({.max_epochs = 1, .nccl_algo = "tree"}); });
}

TEST_CASE("nccl trainer: a rank that is killed ends the others with one error") {
  const auto result = on_processes(3, [] {
    struct KillAt : Callback {
      void on_train_batch_start(RunContext& run, const Batch&, int) override {
        if (run.strategy->rank() == 1 && run.state.global_step == 2) std::raise(SIGKILL);
      }
    };
    manual_seed(3);
    ToyModule model({.dropout = 0, .use_sgd = true});
    data::DataLoader train(toy_points(48), {.batch_size = 4, .shuffle = true, .seed = 7});
    TrainerConfig c = on_devices("ddp", {.max_epochs = 20});
    c.callbacks.push_back(std::make_shared<KillAt>());
    Trainer(c).fit(model, train);
  });
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.statuses[1] == 128 + SIGKILL);
  for (const int other : {0, 2}) CHECK(result->launch.statuses[static_cast<std::size_t>(other)] != 0);
  CHECK(contains(result->output, "rank 1 is lost"));
}
