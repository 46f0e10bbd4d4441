#include "src/config/legacy_options.h"

#include <fmt/format.h>
#include <levin/kernels/cuda.h>

#include <algorithm>
#include <array>

namespace levin {
namespace {

struct Legacy {
  std::string_view name;
  std::string_view instead;  // {} is replaced by the value
};

// Options of Lightning's Trainer in releases 0.5 to 2.0.
constexpr Legacy kLegacy[] = {
    {"gpus", "Use --accelerator cuda --devices {}."},
    {"num_processes", "Use --accelerator cpu --devices {}."},
    {"tpu_cores", "There are no TPU kernels here. Use --accelerator cpu or --accelerator cuda."},
    {"num_tpu_cores", "There are no TPU kernels here. Use --accelerator cpu or --accelerator cuda."},
    {"ipus", "There are no IPU kernels here. Use --accelerator cpu or --accelerator cuda."},
    {"nb_gpu_nodes", "Use --num-nodes {}."},
    {"num_gpu_nodes", "Use --num-nodes {}."},
    {"distributed_backend", "Use --strategy {}."},
    {"replace_sampler_ddp", "The strategy alone distributes the batches; leave it out."},
    {"use_amp", "Use --precision 16-mixed."},
    {"amp_backend", "Use --precision 16-mixed, or --precision 16-o2 for that of Apex."},
    {"resume_from_checkpoint", "Use --resume {}."},
    {"ckpt_path", "Use --resume {}."},
    {"checkpoint_callback", "Use --enable-checkpointing {}."},
    {"weights_summary", "Use --enable-model-summary."},
    {"progress_bar_refresh_rate", "Use --enable-progress-bar."},
    {"show_progress_bar", "Use --enable-progress-bar {}."},
    {"default_save_path", "Use --default-root-dir {}."},
    {"weights_save_path", "Use --default-root-dir {}."},
    {"row_log_interval", "Use --log-every-n-steps {}."},
    {"gradient_clip", "Use --gradient-clip-val {}."},
    {"max_nb_epochs", "Use --max-epochs {}."},
    {"min_nb_epochs", "Use --min-epochs {}."},
    {"nb_sanity_val_steps", "Use --num-sanity-val-steps {}."},
    {"train_percent_check", "Use --limit-train-batches {}."},
    {"val_percent_check", "Use --limit-val-batches {}."},
    {"test_percent_check", "Use --limit-test-batches {}."},
    {"overfit_pct", "Use --overfit-batches {}."},
    {"terminate_on_nan", "Use --detect-anomaly {}."},
    {"auto_lr_find", "Use the callback LearningRateFinder."},
    {"auto_scale_batch_size", "Use the callback BatchSizeFinder."},
    {"stochastic_weight_avg", "Use the callback StochasticWeightAveraging."},
    {"track_grad_norm", "Use the callback GradientNormMonitor."},
    {"reload_dataloaders_every_epoch", "Use --reload-dataloaders-every-n-epochs 1."},
};

/// Maps Apex's optimization levels to precisions.
std::string precision_of(const std::string& level) {
  if (level == "O0") return "32-true";
  if (level == "O2") return "16-o2";
  return level == "O3" ? "16-true" : "16-mixed";
}

}  // namespace

std::optional<std::string> legacy_option(std::string_view name, const std::string& value) {
  if (name == "amp_level") return fmt::format("This is an old spelling. Use --precision {}.", precision_of(value));
  const auto* found =
      std::find_if(std::begin(kLegacy), std::end(kLegacy), [&](const auto& l) { return l.name == name; });
  if (found == std::end(kLegacy)) return std::nullopt;
  return "This is an old spelling. " + fmt::format(fmt::runtime(found->instead), value.empty() ? "..." : value);
}

namespace {

// Devices for which this library has no kernels; strategies contain them in names such as tpu_spawn and single_xla.
constexpr std::array<std::string_view, 5> kDevices = {"tpu", "ipu", "hpu", "mps", "xla"};

/// Says which devices this build supports, and how to build for others.
std::string not_built() {
  const bool cuda = std::string_view(cuda::flavour()) != "OFF";
  return fmt::format(
      "not built; this build has {}, and another device plugs in through levin/core/device.h and the "
      "tables of the operations (docs/adding_a_device.md).",
      cuda ? "cpu and cuda" : "cpu");
}

/// hivemind trains across untrusted machines over the internet.
std::string no_hivemind() {
  return "not built; machines of one cluster train together with --strategy ddp, over the process group of "
         "levin/distributed/process_group.h.";
}

}  // namespace

std::optional<std::string> legacy_strategy(const std::string& value) {
  if (value == "hivemind" || value == "collaborative") return no_hivemind();
  if (value.starts_with("deepspeed"))
    return fmt::format("DeepSpeed is a separate library. Use --strategy {}.",
                       value.starts_with("deepspeed_stage_1")   ? "zero_1"
                       : value.starts_with("deepspeed_stage_2") ? "zero_2"
                       : value.starts_with("deepspeed_stage_3") ? "zero_3, which is fsdp"
                                                                : "zero_1, zero_2 or zero_3, which is fsdp");
  for (std::size_t at = 0; at <= value.size();) {  // splits into words
    const std::size_t end = std::min(value.find('_', at), value.size());
    if (std::find(kDevices.begin(), kDevices.end(), value.substr(at, end - at)) != kDevices.end()) return not_built();
    at = end + 1;
  }
  return std::nullopt;
}

std::optional<std::string> legacy_accelerator(const std::string& value) {
  constexpr std::array<std::string_view, 6> kStrategies = {"dp", "ddp", "ddp2", "ddp_spawn", "ddp_cpu", "horovod"};
  if (std::find(kStrategies.begin(), kStrategies.end(), value) != kStrategies.end())
    return value == "ddp_cpu" ? "this is a strategy in an old spelling. Use --accelerator cpu --strategy ddp."
                              : fmt::format("this is a strategy. Use --strategy {}.", value);
  if (value == "hivemind") return no_hivemind();
  if (std::find(kDevices.begin(), kDevices.end(), value) != kDevices.end()) return not_built();
  return std::nullopt;
}

std::vector<std::string> legacy_option_names() {
  std::vector<std::string> names = {"amp_level"};
  for (const auto& l : kLegacy) names.emplace_back(l.name);
  return names;
}

}  // namespace levin
