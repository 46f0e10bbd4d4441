#include "options.h"

#include <array>

using namespace levin;

bool parse(int argc, char** argv, Options& o) {
  CommandLine line(
      "Learns five kinds of clothes from a few images, with features that were trained on five other kinds.");
  line.add("from", o.from, "Take the features from this checkpoint of an earlier run, such as runs/transfer/base/best");
  line.add("base-epochs", o.base_epochs, "Epochs on the first five kinds, without --from", 1);
  line.add("unfreeze-at", o.unfreeze_at, "Epoch from which the features are trained too, at a tenth of the rate");
  line.add("images", o.images, "Training images of each new kind", 1);
  line.add("batch-size", o.batch_size, "Images per step on the new kinds", 1);
  line.add("lr", o.lr, "Learning rate of the head");
  line.add("seed", o.seed, "Seed of the weights, the order and the choice of images");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add_path("checkpoint", o.trainer.default_root_dir, "Folder for checkpoints and logs: --default-root-dir");
  line.add_trainer(o.trainer, {"seed"});
  if (!line.parse(argc, argv)) return false;
  if (!(o.lr > 0)) throw UsageError("--lr " + std::to_string(o.lr) + ": give a number above 0.");
  if (const auto& from = o.trainer.resume; !from.empty() && from != "last" && from != "best")
    throw UsageError("--resume " + from + ": each of the three trainings has its own; give last or best.");
  return true;
}

DataModule clothes(const Options& o, std::int64_t first_class, std::int64_t per_class, std::int64_t batch_size) {
  constexpr std::int64_t kHeldOut = 100;  // images of each class
  const std::string dir = o.data.empty() ? data::kFashionMnistDir : o.data;
  const auto load = [&](const char* split) { return std::make_shared<data::FashionMnist>(split, dir); };
  const auto train = load("train"), test = load("test");

  std::array<std::int64_t, 5> seen{};
  std::vector<std::int64_t> chosen, held_out, tested;
  Generator rng(static_cast<std::uint64_t>(o.seed));
  const auto labels = train->labels().to_vector<std::int64_t>();
  for (const std::int64_t i : randperm(train->size(), {.generator = &rng}).to_vector<std::int64_t>()) {
    const std::int64_t label = labels[static_cast<std::size_t>(i)] - first_class;
    if (label < 0 || label > 4) continue;
    const std::int64_t before = seen[static_cast<std::size_t>(label)]++;
    if (before < kHeldOut)
      held_out.push_back(i);
    else if (per_class == 0 || before < kHeldOut + per_class)
      chosen.push_back(i);
  }
  const auto test_labels = test->labels().to_vector<std::int64_t>();
  for (std::size_t i = 0; i < test_labels.size(); ++i)
    if (test_labels[i] >= first_class && test_labels[i] <= first_class + 4)
      tested.push_back(static_cast<std::int64_t>(i));

  const auto loader = [&](const data::DatasetPtr& from, std::vector<std::int64_t> indices, std::int64_t size,
                          bool shuffle) {
    return std::make_shared<data::DataLoader>(
        data::Subset(from, std::move(indices)),
        data::DataLoaderOptions{.batch_size = size, .shuffle = shuffle, .seed = static_cast<std::uint64_t>(o.seed)});
  };
  return {.train = loader(train, std::move(chosen), batch_size, true),
          .val = loader(train, std::move(held_out), 250, false),
          .test = loader(test, std::move(tested), 500, false)};
}
