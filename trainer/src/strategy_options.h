#pragma once
// What the Trainer's and Fabric's options, which have the same names, say of the strategy.

#include <levin/trainer/strategy.h>

namespace levin {

template <class Config>
StrategyOptions strategy_options_of(const Config& c) {
  return {.strategy = c.strategy,
          .accelerator = c.accelerator,
          .devices = c.devices,
          .num_nodes = c.num_nodes,
          .node_rank = c.node_rank,
          .timeout = c.timeout,
          .nccl_algo = c.nccl_algo,
          .ddp_comm_hook = c.ddp_comm_hook,
          .model_averaging_period = c.model_averaging_period,
          .start_local_sgd_iter = c.start_local_sgd_iter,
          .post_local_gradient_allreduce = c.post_local_gradient_allreduce,
          .scale_lr = c.scale_lr,
          .gradient_compression = c.gradient_compression,
          .fusion_threshold_mb = c.fusion_threshold_mb,
          .cycle_time_ms = c.cycle_time_ms,
          .bagua_algorithm = c.bagua_algorithm,
          .bagua_peers = c.bagua_peers,
          .bagua_scale_lr = c.bagua_scale_lr,
          .bagua_warmup_steps = c.bagua_warmup_steps,
          .bagua_sync_interval_ms = c.bagua_sync_interval_ms,
          .fsdp_unit_size = c.fsdp_unit_size,
          .fsdp_state_dict_type = c.fsdp_state_dict_type,
          .pipeline_micro_batches = c.pipeline_micro_batches,
          .pipeline_balance = c.pipeline_balance};
}

}  // namespace levin
