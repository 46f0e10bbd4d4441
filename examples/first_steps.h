#pragma once
// The first steps of a run as files, from which the same model in PyTorch repeats them: `./run compare models`.
#include <levin/interop/safetensors.h>
#include <levin/levin.h>

#include <fmt/format.h>

#include <filesystem>

namespace levin {

/// Writes weights.safetensors, the weights before training, and steps.safetensors: the tensors of each batch as
/// "<step>/<i>", the losses as "losses", the times in seconds at which the steps ended as "ends", and the number of
/// steps that learning-rate schedules count on as "schedule". Stops the fit after 20 steps. Does nothing without a
/// folder.
class FirstSteps final : public Callback {
 public:
  /// Adds the option --record, which names the folder.
  static void add_option(CommandLine& line, std::string& folder) {
    line.add_path("record", folder, "Folder for the first steps, which `./run compare models` repeats in PyTorch");
  }
  explicit FirstSteps(std::string folder) : folder_(std::move(folder)) {}

  void on_train_start(RunContext& run) override {
    if (folder_.empty()) return;
    std::filesystem::create_directories(folder_);
    interop::save_safetensors(folder_ + "/weights.safetensors", run.module.state_dict());
  }
  void on_train_batch_end(RunContext& run, const StepOutput& output, const Batch& batch, int) override {
    if (folder_.empty()) return;
    for (std::size_t i = 0; i < batch.tensors.size(); ++i)
      tensors_.set(fmt::format("{}/{}", losses_.size(), i), batch.tensors[i].clone());
    losses_.push_back(output.loss().item<double>());
    ends_.push_back(monotonic_seconds());
    tensors_.set("schedule", tensor(run.estimated_stepping_batches()));
    if (losses_.size() == 20) run.stop.request("the first steps are recorded");
  }
  void on_train_end(RunContext&) override {
    if (folder_.empty()) return;
    tensors_.set("losses", tensor(losses_));
    tensors_.set("ends", tensor(ends_));
    interop::save_safetensors(folder_ + "/steps.safetensors", tensors_);
  }

 private:
  std::string folder_;
  StateDict tensors_;
  std::vector<double> losses_, ends_;
};

}  // namespace levin
