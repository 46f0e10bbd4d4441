#pragma once
// Options of single strategies, shared by TrainerConfig and FabricConfig. A new option is a field here and its row in
// trainer/src/config/config_fields.cpp, which makes its flag and its key in files.

#include <cstdint>
#include <optional>
#include <string>

namespace levin {

struct DdpConfig {
  std::string comm_hook = "none";  ///< "none", "fp16_compress", "bf16_compress" or "post_local_sgd"
  std::int64_t model_averaging_period = 0;    ///< post_local_sgd: steps between two averages of the weights
  std::int64_t start_local_sgd_iter = 0;      ///< post_local_sgd: initial steps with averaged gradients
  bool post_local_gradient_allreduce = true;  ///< post_local_sgd: afterwards average gradients within a machine
};

struct HorovodConfig {
  bool scale_lr = true;  ///< multiply learning rates and schedulers' base rates by the number of ranks
  std::string gradient_compression = "none";    ///< "none" or "fp16"
  std::optional<double> fusion_threshold_mb{};  ///< MiB per fused all-reduce; HOROVOD_FUSION_THRESHOLD, or 64
  std::optional<double> cycle_time_ms{};        ///< ms between two negotiations; HOROVOD_CYCLE_TIME, or 5
};

struct BaguaConfig {
  std::string algorithm = "gradient_allreduce";  ///< see docs/distributed.md
  std::string peers = "all";             ///< decentralized: "all" or "shift_one"
  std::string scale_lr = "none";         ///< local gradients: "none", or "sqrt" of the number of ranks
  std::int64_t warmup_steps = 0;         ///< async: initial steps with averaged gradients
  std::int64_t sync_interval_ms = 500;   ///< async: ms between two averages of the weights
};

struct FsdpConfig {
  std::int64_t unit_size = 100'000;  ///< minimum number of elements of a module that forms its own unit
  /// fsdp, zero_1, zero_2: "full" checkpoints are gathered and written by rank 0; for "sharded" ones each rank writes
  /// its part, never asynchronously, into a folder that all ranks share. Any strategy reads both.
  std::string state_dict_type = "full";
};

struct PipelineConfig {
  std::int64_t micro_batches = 4;  ///< micro-batches per batch
  std::string balance{};           ///< layers of each stage, as "2,2"; if empty, balanced by parameters
};

}  // namespace levin
