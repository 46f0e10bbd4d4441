// Trains a classifier of ten kinds of clothes: ./run mnist --help
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

#include "lit_mnist.h"
#include "options.h"
#include "raw_loop.h"
#include "run_times.h"

using namespace levin;

namespace {

/// Trains, keeps the weights with the best validation accuracy, and evaluates those on the test set once.
RawResult train(const Options& o, const DataModule& data, FirstStep& first_step) {
  LitMnist model(o.model, o.lr);
  TrainerConfig config = o.trainer;
  const bool validates = config.limit_val_batches.of(data.val->size(), "--limit-val-batches") > 0;
  const auto best = std::make_shared<ModelCheckpoint>(ModelCheckpointOptions{
      .dirpath = config.default_root_dir, .monitor = validates ? "val_acc" : "", .mode = Mode::max});
  if (config.enable_checkpointing) config.callbacks.push_back(best);
  config.callbacks.push_back(first_step);
  config.callbacks.push_back(LearningRateMonitor());
  config.callbacks.push_back(
      TestReport(o.dataset == "fashion" ? data::FashionMnist::classes() : std::vector<std::string>()));
  Trainer trainer(config);
  trainer.fit(model, data);
  const auto folder = best->best_model_path();
  const auto test = trainer.test(model, data, folder)[0];
  const std::filesystem::path root = o.trainer.default_root_dir;
  const bool writes_report = trainer.config().logger.has("html") && config.fast_dev_run == 0;
  return {.test_acc = test.at("test_acc"),
          .test_loss = test.at("test_loss"),
          .val_acc = best->best_model_score().value_or(trainer.metrics().find("val_acc").value_or(std::nan(""))),
          .checkpoint = folder.empty() ? folder : (root / "best").string(),
          .report = writes_report ? root / "report.html" : "",
          .reports = trainer.is_global_zero()};
}

int run(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, o)) return 0;
  if (o.threads > 0) set_num_threads(static_cast<int>(o.threads));
  manual_seed(static_cast<std::uint64_t>(o.seed));

  const double before = ms_since_process_start();
  const DataModule data = load_data(o);
  FirstStep first_step(ms_since_process_start() - before);
  const auto start = std::chrono::steady_clock::now();
  const RawResult r = o.raw ? train_raw(o, data, first_step) : train(o, data, first_step);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  if (!r.reports) return 0;
  const std::string checkpoint = r.checkpoint.empty() ? "none" : r.checkpoint;
  const std::string validation =
      std::isnan(r.val_acc) ? "no validation" : fmt::format("best validation accuracy {:.2f} %", 100 * r.val_acc);
  auto summary = fmt::format("{} on {}: test accuracy {:.2f} %, {}, {:.1f} s\nweights: {}\n", o.model, o.dataset,
                             100 * r.test_acc, validation, seconds, checkpoint);
  if (!r.report.empty()) summary += fmt::format("report: {}\n", r.report);
  const auto result = fmt::format(
      "result: test_accuracy={:.4f} test_loss={:.4f} val_accuracy={:.4f} train_seconds={:.1f} "
      "startup_ms={:.0f} epochs={} model={} checkpoint={}\n",
      r.test_acc, r.test_loss, r.val_acc, seconds, *first_step.startup_ms, o.epochs(), o.model, checkpoint);
  if (!r.checkpoint.empty())
    io::write_file(std::filesystem::path(o.trainer.default_root_dir) / "summary.txt", summary + result);
  fmt::print("{}{}", summary, result);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return run_main([&] { return run(argc, argv); });
}
