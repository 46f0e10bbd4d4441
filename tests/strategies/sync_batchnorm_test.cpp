// --sync-batchnorm: ranks normalise by the batches of all of them.
#include "trainer/processes.h"
#include "trainer/toy.h"

using namespace levin;
using namespace levin::test;

namespace {

struct Normed : ToyModule {
  Normed() : ToyModule({.dropout = 0, .use_sgd = true}) {}
  nn::BatchNorm2d& norm = add<nn::BatchNorm2d>("norm", 12);
  Tensor forward(const Tensor& x) override {
    return fc2(relu(norm(fc1(x).reshape({-1, 12, 1, 1})).reshape({-1, 12})));
  }
};

std::vector<std::vector<float>> trained(TrainerConfig c, std::int64_t batch) {
  manual_seed(3);
  Normed model;
  model.norm.num_batches_tracked.zero_();
  data::DataLoader train(toy_points(40), {.batch_size = batch, .shuffle = true, .seed = 7});
  c.max_epochs = 3;
  Trainer(quiet(c)).fit(model, train);
  std::vector<std::vector<float>> out;
  for (const auto& [name, t] : model.state_dict()) out.push_back(t.to(kFloat32).to_vector<float>());
  return out;
}

}  // namespace

TEST_CASE("strategy ddp with --sync-batchnorm matches one rank on the whole batch, including buffers") {
  pass_on(2, [] {
    const TrainerConfig ddp{.accelerator = "cpu", .timeout = 60, .strategy = "ddp"};
    TrainerConfig synced = ddp;
    synced.sync_batchnorm = true;
    const auto alone = trained({.sync_batchnorm = true}, 12), together = trained(synced, 6);
    CHECK(largest_difference(alone, together) <= 1e-5);
    CHECK(differs(alone, trained(ddp, 6), 1e-3));  // without it they differ
  });
}
