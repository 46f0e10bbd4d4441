#pragma once
// State that a Trainer keeps between its runs, and the implementation of a run.

#include <levin/trainer/fabric.h>
#include <levin/trainer/trainer.h>

#include <filesystem>

#include "src/checkpoint/fit_checkpoint.h"
#include "src/loops/fit_loop.h"

namespace levin {

struct Trainer::Impl {
  explicit Impl(TrainerConfig given);

  void save(const std::string& path, bool weights_only);
  void fit(LevinModule& module, const DataSource& from, const std::string& ckpt);
  void fit_here(LevinModule& module, const DataSource& from, const std::string& ckpt);
  /// Returns the values of one pass.
  Results measure(LevinModule& module, const DataSource& from, Stage stage, const std::string& ckpt);
  Predictions predict(LevinModule& module, const DataSource& from, const std::string& ckpt);
  /// Returns the optimizer steps of this or the last fit.
  std::int64_t total_steps();

  TrainerConfig config;
  Fabric fabric;
  std::vector<CallbackPtr> own_callbacks;  // from the configuration, and the defaults
  std::vector<CallbackPtr> callbacks;      // including those of the module in use
  std::vector<std::shared_ptr<Logger>> loggers;
  PrecisionPlugin* precision = &fabric.precision();
  std::shared_ptr<Profiler> profiler = make_profiler(config.profiler);
  TrainState state;
  MetricStore metrics;
  StopToken stop;
  DataSource source;
  DataModule data;  // the loaders in use, or last used
  BatchCounts counts;
  std::filesystem::path root;
  std::string ckpt_path;
  Run* running = nullptr;
  RunStatus status = RunStatus::success;
  int ended_by = 0;                      // signal that ended the last run
  CheckpointKeeper* lent = nullptr;      // set while a fit runs
  std::optional<Checkpoint> finished{};  // of the last fit
  LevinModule* trained = nullptr;        // module of the last fit
  std::weak_ptr<const void> trained_lives{};

 private:
  /// Runs `here` in this process or in spawned ranks, and takes over their results.
  void spawned(LevinModule& module, Stage stage, const std::function<void()>& here);
  Checkpoint spawn_result(const LevinModule& module);
  void take_result(LevinModule& module, Stage stage, const std::string& folder);
  void add_defaults();
  void add_policies();
  void policies_last();
  void take_callbacks(LevinModule& module);
  /// Creates a run of this trainer's state on `module`.
  Run make_run(LevinModule& module, Stage stage);
  void prepare(Run& run, LevinModule& module, Stage stage);
  template <class F>
  void guarded(Run& run, LevinModule& module, Stage stage, const F& body);
  void check_manual(const LevinModule& module) const;
  void check_sharded_weights();
  struct KeeperLoan;
  void evaluate(LevinModule& module, const DataSource& from, Stage stage, const std::string& ckpt,
                Predictions* predictions);
};

}  // namespace levin
