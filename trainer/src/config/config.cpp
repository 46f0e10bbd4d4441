#include <levin/trainer/config/config.h>

#include <fmt/format.h>

#include <levin/trainer/precision.h>
#include <levin/trainer/profilers/profiler.h>
#include <levin/trainer/strategy.h>

#include "src/config/strategy_options.h"

namespace levin {
namespace {

void at_least(std::int64_t value, std::int64_t least, const char* option) {
  if (value < least) throw UsageError(fmt::format("{} {}: give {} or more.", option, value, least));
}

}  // namespace

StrategyOptions strategy_options(const TrainerConfig& c) { return shared_options<StrategyOptions>(c); }

void check_config(const TrainerConfig& c) {
  at_least(c.max_epochs.value_or(0), -1, "--max-epochs");
  at_least(c.min_epochs, 0, "--min-epochs");
  at_least(c.max_steps, -1, "--max-steps");
  at_least(c.min_steps, 0, "--min-steps");
  at_least(c.fast_dev_run, 0, "--fast-dev-run");
  at_least(c.check_val_every_n_epoch.value_or(1), 1, "--check-val-every-n-epoch");
  at_least(c.num_sanity_val_steps, -1, "--num-sanity-val-steps");
  at_least(c.accumulate_grad_batches, 1, "--accumulate-grad-batches");
  at_least(c.log_every_n_steps, 1, "--log-every-n-steps");
  c.limit_train_batches.check("--limit-train-batches");
  c.limit_val_batches.check("--limit-val-batches");
  c.limit_test_batches.check("--limit-test-batches");
  c.limit_predict_batches.check("--limit-predict-batches");
  c.overfit_batches.check("--overfit-batches");
  at_least(c.reload_dataloaders_every_n_epochs, 0, "--reload-dataloaders-every-n-epochs");
  at_least(c.num_nodes, 1, "--num-nodes");
  const BatchLimit& interval = c.val_check_interval.batches();
  interval.check("--val-check-interval");
  if (interval.is_count()) at_least(interval.count(), 1, "--val-check-interval");
  if (c.gradient_clip_val && !(*c.gradient_clip_val > 0))
    throw UsageError(
        fmt::format("--gradient-clip-val {}: give a number above 0, or leave it out.", *c.gradient_clip_val));
  if (c.gradient_clip_algorithm != "norm" && c.gradient_clip_algorithm != "value")
    throw UsageError(fmt::format("--gradient-clip-algorithm {}: choose norm or value.", c.gradient_clip_algorithm));
  at_least(c.node_rank, -1, "--node-rank");
  at_least(c.timeout, 1, "--timeout");
  if (c.nccl_algo != "ring" && c.nccl_algo != "tree" && c.nccl_algo != "auto")
    throw UsageError(fmt::format("--nccl-algo {}: choose ring, tree or auto.", c.nccl_algo));
  at_least(c.checkpoint_every_n_steps, 0, "--checkpoint-every-n-steps");
  check_strategy(strategy_options(c));
  if (c.sync_batchnorm && (c.strategy == "dp" || c.strategy == "ddp2"))
    throw UsageError(
        fmt::format("--sync-batchnorm: the replicas of --strategy {} share one process, where each normalises by its "
                    "own part. Use --strategy ddp.",
                    c.strategy));
  if (c.sync_batchnorm && c.strategy == "pipeline")
    throw UsageError(
        "--sync-batchnorm: under --strategy pipeline one rank has a batch norm, which sees all of a micro-batch. Leave "
        "it out.");
  make_precision(c.precision);
  make_profiler(c.profiler);
}

LoggerChoice::LoggerChoice(const std::string& text) : LoggerChoice(parse(text)) {}
LoggerChoice::LoggerChoice(const char* text) : LoggerChoice(parse(text)) {}
LoggerChoice::operator bool() const { return !names_.empty(); }

}  // namespace levin
