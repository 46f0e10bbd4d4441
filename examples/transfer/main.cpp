// Transfer learning: features trained on t-shirts to coats classify sandals to boots from a few images: ./run transfer
// --help
#include <levin/trainer/checkpoint/checkpoint.h>

#include <fmt/format.h>

#include <chrono>
#include <filesystem>

#include "lit_clothes.h"
#include "options.h"

using namespace levin;

namespace {

struct Trained {
  double test_acc = 0;
  std::string checkpoint;  // the best weights in validation; empty if none was written
};

/// Fits, and evaluates the best weights on the test set.
Trained train(LitClothes& model, const DataModule& data, TrainerConfig config, const std::string& name) {
  config.default_root_dir = std::filesystem::path(config.default_root_dir) / name;
  if (!config.resume.empty() && !std::filesystem::exists(config.default_root_dir + "/" + config.resume))
    config.resume = {};
  const bool validates = config.limit_val_batches.of(data.val->size(), "--limit-val-batches") > 0;
  const auto best = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
      .dirpath = config.default_root_dir, .monitor = validates ? "val_acc" : "", .mode = Mode::max});
  if (config.enable_checkpointing) config.callbacks.push_back(best);
  Trainer trainer(config);
  trainer.fit(model, data);
  const auto folder = best->best_model_path();
  return {trainer.test(model, data, folder)[0].at("test_acc"), folder};
}

/// Checks that the backbone is unchanged until it is unfrozen.
struct FrozenCheck : Callback {
  explicit FrozenCheck(std::int64_t unfreezes_at) : epochs(unfreezes_at) {}
  std::int64_t epochs;
  std::vector<std::vector<float>> before;
  bool unchanged = true;

  static std::vector<std::vector<float>> values(const RunContext& run) {
    std::vector<std::vector<float>> out;
    for (const auto& [name, t] : run.module.get_submodule("backbone").state_dict()) out.push_back(t.to_vector<float>());
    return out;
  }
  void on_train_start(RunContext& run) override { before = values(run); }
  void on_train_epoch_end(RunContext& run) override {
    if (run.state.epoch < epochs) unchanged = unchanged && values(run) == before;
  }
};

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  manual_seed(static_cast<std::uint64_t>(o.seed));
  const auto start = std::chrono::steady_clock::now();

  StateDict features;
  double base_acc = 0;
  const auto take = [&](const std::string& from) { features = read_checkpoint(from).model.sub("backbone."); };
  if (!o.from.empty())
    take(o.from);
  else {
    LitClothes first(/*first_class=*/0, 2e-3);
    fmt::print("1. train features on images of classes 0 to 4\n");
    TrainerConfig config = o.trainer;
    config.max_epochs = o.base_epochs;
    const Trained t = train(first, clothes(o, 0, 0, 128), config, "base");
    if (t.checkpoint.empty())
      features = first.backbone.state_dict();
    else
      take(t.checkpoint);
    base_acc = t.test_acc;
  }

  const DataModule few = clothes(o, 5, o.images, o.batch_size);
  fmt::print("2. train on {} images of each of classes 5 to 9, with those features\n", o.images);
  LitClothes transfer(/*first_class=*/5, o.lr);
  transfer.backbone.load_state_dict(features);
  const auto check = std::make_shared<FrozenCheck>(o.unfreeze_at);
  TrainerConfig config = o.trainer;
  config.callbacks = {BackboneFinetuning({.unfreeze_backbone_at_epoch = o.unfreeze_at,
                                          .lambda_func = [](std::int64_t) { return 1.0; }}),
                      LearningRateMonitor(), check};
  const Trained with = train(transfer, few, config, "transfer");

  fmt::print("3. train on the same images from scratch\n");
  LitClothes scratch(/*first_class=*/5, o.lr);
  const Trained without = train(scratch, few, o.trainer, "scratch");

  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print(
      "result: transfer_accuracy={:.4f} scratch_accuracy={:.4f} base_accuracy={:.4f} frozen={} images={} "
      "seconds={:.1f} checkpoint={}\n",
      with.test_acc, without.test_acc, base_acc, check->unchanged ? "unchanged" : "changed", o.images, seconds,
      with.checkpoint.empty() ? "none"
                              : (std::filesystem::path(o.trainer.default_root_dir) / "transfer/best").string());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
