#include "options.h"

using namespace levin;

bool parse(int argc, char** argv, Options& o) {
  CommandLine line("Trains a small network on Fashion-MNIST: pictures of clothes, ten kinds.");
  line.add_choice("model", o.model, {"mlp", "lenet", "cnn"}, "Which network");
  line.add("max-epochs", o.max_epochs, "Times through the training pictures", 1);
  line.add("batch-size", o.batch_size, "Pictures a step", 1);
  line.add("lr", o.lr, "Highest learning rate of the one-cycle schedule");
  line.add("seed", o.seed, "Of weights, order and held-out pictures");
  line.add("threads", o.threads, "Cores to use; 0 for all");
  line.add("data", o.data, "Folder of the IDX files, plain or .gz");
  line.add_choice("dataset", o.dataset, {"fashion", "mnist"}, "What is learnt; mnist needs --data");
  line.add("checkpoint", o.checkpoint, "Folder for checkpoints, log and summary");
  line.add("resume", o.resume, "Go on from this checkpoint; last: the newest in --checkpoint");
  line.add("limit-train-batches", o.limit_train, "Training batches an epoch, or a fraction");
  line.add("limit-val-batches", o.limit_val, "Validation batches, or a fraction");
  line.add("limit-test-batches", o.limit_test, "Test batches, or a fraction");
  line.add("precision", o.precision, "32-true, 64-true, 16-mixed, bf16-mixed, 16-true, bf16-true or 16-o2");
  line.add("accelerator", o.accelerator, "cpu, cuda, or auto: a GPU where there is one");
  line.add("devices", o.devices, "Which GPU: its index as [0]");
  line.add_flag("fast-dev-run", o.fast_dev_run, "One batch of everything, nothing is written");
  line.add_flag("raw", o.raw, "The same training as a plain loop, without Trainer");
  if (!line.parse(argc, argv)) return false;
  if (!(o.lr > 0)) throw UsageError("--lr " + std::to_string(o.lr) + ": give a number above 0.");
  if (o.dataset == "mnist" && o.data.empty()) throw UsageError("--dataset mnist: say with --data where its files are.");
  if (o.raw && !o.resume.empty()) throw UsageError("--raw cannot --resume: leave one of them out.");
  if (o.raw && (o.precision != "32-true" || o.accelerator != "cpu"))
    throw UsageError("--raw is the plain loop on the CPU in float32: leave --precision and --accelerator out.");
  return true;
}

DataModule load_data(const Options& o) {
  data::FashionMnistOptions data{.batch_size = o.batch_size, .seed = static_cast<std::uint64_t>(o.seed)};
  if (!o.data.empty()) data.dir = o.data;
  return o.dataset == "mnist" ? data::mnist(data) : data::fashion_mnist(data);
}
