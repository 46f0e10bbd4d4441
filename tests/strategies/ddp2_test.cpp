// --strategy ddp2: each process represents a machine with two replicas.
#include "strategies/replicas.h"

using namespace levin;
using namespace levin::test;

namespace {

/// Makes every process its own machine, as a launcher would.
void be_a_machine() {
  setenv("NODE_RANK", std::getenv("RANK"), 1);
  setenv("LOCAL_RANK", "0", 1);
  setenv("LOCAL_WORLD_SIZE", "1", 1);
}

TrainerConfig ddp2(TrainerConfig c = {}) {
  be_a_machine();
  c.num_nodes = ranks();
  return on_replicas("ddp2", 2, c);
}

/// A contrastive loss: every sample must be closest to its own second view among all samples.
struct Nce : LevinModule {
  nn::Linear& fc = add<nn::Linear>("fc", 6, 5);
  std::int64_t machines = 1;
  std::vector<std::int64_t> rows;
  Tensor forward(const Tensor& x) override { return fc(x); }
  StepOutput training_step(const Batch& b, int) override {
    return {Tensor(), {{"first", (*this)(b[0])}, {"second", (*this)(b[0] * 0.5)}}};
  }
  StepOutput training_step_end(const StepOutput& whole) override {
    const Tensor a = whole.extras().at("first"), b = whole.extras().at("second");
    rows.push_back(a.size(0));
    // One device sees the batches of all machines, each machine's samples apart, as its own process does.
    Tensor loss = zeros({});
    const std::int64_t n = a.size(0) / machines;
    for (std::int64_t m = 0; m < machines; ++m)
      loss = loss + cross_entropy(matmul(a.narrow(0, m * n, n), b.narrow(0, m * n, n).transpose(0, 1)), arange(n));
    return loss / static_cast<double>(machines);
  }
  Optimizers configure_optimizers() override { return optim::SGD(parameters(), {.lr = 0.2}); }
};

/// The same samples with those of each machine one after the other in every batch.
data::TensorDataset by_machine(const Tensor& x, std::int64_t whole, std::int64_t machines) {
  std::vector<Tensor> rows;
  for (std::int64_t at = 0; at < x.size(0); at += whole)
    for (std::int64_t m = 0; m < machines; ++m)
      for (std::int64_t i = m; i < whole; i += machines) rows.push_back(x.narrow(0, at + i, 1));
  return data::TensorDataset({cat(rows, 0)});
}

}  // namespace

TEST_CASE("ddp2/nce_loss_sees_node_batch") {
  pass_on(2, [] {
    manual_seed(5);
    const Tensor x = randn({48, 6});
    const auto fit = [](Nce& model, TrainerConfig c, data::TensorDataset data, std::int64_t batch) {
      data::DataLoader train(data, {.batch_size = batch});
      c.max_epochs = 2;
      Trainer(c).fit(model, train);
      return values_of(model);
    };
    manual_seed(1);
    Nce alone;
    alone.machines = 2;
    const auto one = fit(alone, quiet(), by_machine(x, 16, 2), 16);
    manual_seed(1);
    Nce together;
    const auto machines = fit(together, ddp2(), data::TensorDataset({x}), 8);
    CHECK(together.rows == std::vector<std::int64_t>(6, 8));  // a machine's batch, not a replica's 4
    CHECK(largest_difference(one, machines) <= 1e-6);
    manual_seed(1);
    CHECK(differs(one, values_of(Nce()), 1e-2));  // training has changed the weights
  });
}

TEST_CASE("strategy ddp2: two machines with two replicas each have the weights of one device") {
  pass_on(2, [] {
    const auto fit = [](TrainerConfig c, std::int64_t batch, double& mean) {
      struct Logs : ToyModule {
        explicit Logs(ToyOptions o) : ToyModule(o) {}
        StepOutput training_step(const Batch& b, int index) override {
          log("first", b[0].sum(), {.on_step = false, .on_epoch = true, .reduce = Reduce::sum, .sync_dist = true});
          return ToyModule::training_step(b, index);
        }
      };
      manual_seed(3);
      Logs model({.dropout = 0, .use_sgd = true});
      data::DataLoader train(toy_points(44), {.batch_size = batch, .shuffle = true, .seed = 7});
      c.max_epochs = 3;
      c.accumulate_grad_batches = 2;
      Trainer trainer(c);
      trainer.fit(model, train);
      mean = trainer.metrics().find("first").value();
      if (c.strategy == "ddp2") {
        CHECK(trainer.world_size() == 2);
        CHECK(trainer.global_rank() == trainer.node_rank());
        CHECK(trainer.num_training_batches() == 4);
        CHECK(same_on_all(trainer.fabric().strategy(), values_of(model)));
        CHECK_FALSE(same_on_all(trainer.fabric().strategy(), {{static_cast<float>(mean)}}));  // each has its own
      }
      return values_of(model);
    };
    double all = 0, own = 0;
    const auto one = fit(quiet(), 12, all), several = fit(ddp2(), 6, own);
    CHECK(largest_difference(one, several) <= 1e-6);
    CHECK(std::abs(all - own) > 1e-3);
  });
}

TEST_CASE("strategy ddp2: several processes of one machine are refused") {
  const auto result = on_processes(2, [] {
    CHECK(contains(message_of<UsageError>([] { Trainer t(on_replicas("ddp2", 2)); }),
                   "--strategy ddp2: it uses one process per machine, but RANK and WORLD_SIZE specify 2 on this one."));
  });
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}
