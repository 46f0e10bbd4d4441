// --strategy dp on several CUDA devices: the batch is scattered, and everything is gathered on the first device.
#include "cuda/training/training.h"
#include "strategies/replicas.h"

#include <levin/kernels/cuda.h>

using namespace levin;
using namespace levin::test;

namespace {

struct Scored : PointNet {
  metrics::Accuracy& seen = add_metric<metrics::Accuracy>("seen", metrics::StatScoresOptions{.num_classes = 3});
  static inline std::mutex mutex;
  static inline std::set<int> on;  ///< the devices that got a part
  StepOutput training_step(const Batch& b, int index) override {
    {
      const std::lock_guard lock(mutex);
      on.insert(b[0].device().index);
      CHECK(fc1.weight.device() == b[0].device());
    }
    const Tensor scores = (*this)(b[0]);
    seen.update(scores.detach(), b[1]);
    log("seen", seen, {.on_step = false, .on_epoch = true});
    return PointNet::training_step(b, index);
  }
};

template <class Module>
std::vector<std::vector<float>> trained(int devices, LoggedValues::Values& logged) {
  manual_seed(3);
  Module model;
  Scored::on.clear();
  data::DataLoader train(toy_points(33), {.batch_size = 17, .shuffle = true, .seed = 7});
  TrainerConfig config{.max_epochs = 2, .accelerator = "cuda", .strategy = "single"};
  config.devices = devices;
  if (devices > 1) config.strategy = "dp";
  config.callbacks = {LoggedValues(logged)};
  Trainer(quiet(config)).fit(model, train);
  CHECK(model.fc1.weight.device() == cuda(0));
  return values_of(model);
}

}  // namespace

TEST_CASE("strategy dp on cuda: two devices give the weights, metrics and logged values of one") {
  if (cuda::device_count() < 2) return;
  LoggedValues::Values one_logged;
  const auto one = trained<Scored>(1, one_logged);
  for (const bool side_by_side : {false, true}) {
    CAPTURE(side_by_side);
    LoggedValues::Values logged;
    const auto two = side_by_side ? trained<Rebuilt<Scored>>(2, logged) : trained<Scored>(2, logged);
    CHECK(Scored::on == std::set<int>{0, 1});
    CHECK(largest_difference(one, two) <= 1e-5);
    CHECK(difference(one_logged, logged) <= 1e-5);
  }
}
