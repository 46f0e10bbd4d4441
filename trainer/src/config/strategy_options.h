#pragma once
// The options that TrainerConfig, FabricConfig and StrategyOptions share under the same names.

#include <levin/trainer/strategy.h>

namespace levin {

template <class To, class From>
To shared_options(const From& from) {
  To to;
  to.strategy = from.strategy;
  to.accelerator = from.accelerator;
  to.devices = from.devices;
  to.num_nodes = from.num_nodes;
  to.node_rank = from.node_rank;
  to.timeout = from.timeout;
  to.nccl_algo = from.nccl_algo;
  to.ddp = from.ddp;
  to.horovod = from.horovod;
  to.bagua = from.bagua;
  to.fsdp = from.fsdp;
  to.pipeline = from.pipeline;
  return to;
}

}  // namespace levin
