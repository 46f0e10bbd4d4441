#include "options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

using namespace levin;

namespace {

/// The Trainer's options that the plain loop supports.
constexpr std::array<std::string_view, 6> kRaw = {"max-epochs",         "limit-train-batches", "limit-val-batches",
                                                  "limit-test-batches", "fast-dev-run",        "default-root-dir"};

}  // namespace

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a small network on Fashion-MNIST: images of clothes in ten classes.");
  line.add_choice("model", o.model, {"mlp", "lenet", "cnn", "fast"}, "Network to train");
  line.add("batch-size", o.batch_size, "Images per step", 1);
  line.add("lr", o.lr, "Highest learning rate of the one-cycle schedule");
  line.add("seed", o.seed, "Seed of the weights, the order and the held-out images");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add_path("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add_choice("dataset", o.dataset, {"fashion", "mnist"}, "Dataset to train on; mnist needs --data");
  line.add_path("checkpoint", o.trainer.default_root_dir,
                "Folder for checkpoints, log and summary: --default-root-dir");
  line.add_flag("raw", o.raw, "Run the same training as a plain loop, without the Trainer");
  line.add_trainer(o.trainer, {"seed"});
  if (!line.parse(argc, argv)) return false;
  if (!(o.lr > 0)) throw UsageError("--lr " + std::to_string(o.lr) + ": give a number above 0.");
  if (o.dataset == "mnist" && o.data.empty()) throw UsageError("--dataset mnist: give its folder with --data.");
  if (o.epochs() < 1) throw UsageError(fmt::format("--max-epochs {}: give a whole number of 1 or more.", o.epochs()));
  if (o.raw && !o.trainer.resume.empty()) throw UsageError("--raw cannot --resume: leave one of them out.");
  for (const auto& name : line.given())
    if (o.raw && line.is_of_trainer(name) && std::find(kRaw.begin(), kRaw.end(), name) == kRaw.end())
      throw UsageError(fmt::format("--raw is the plain loop on the CPU in float32: leave --{} out.", name));
  return true;
}

DataModule load_data(const Options& o) {
  data::FashionMnistOptions data{.batch_size = o.batch_size, .seed = static_cast<std::uint64_t>(o.seed)};
  if (!o.data.empty()) data.dir = o.data;
  return o.dataset == "mnist" ? data::mnist(data) : data::fashion_mnist(data);
}
