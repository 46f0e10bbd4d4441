#pragma once
// Options of single strategies, shared by TrainerConfig and FabricConfig. strategy_option_rows.h has their types,
// names, defaults and meanings.

#include <cstdint>
#include <optional>
#include <string>

namespace levin {

/// Options of the strategies that exchange gradients as ddp does.
struct DdpConfig {
#define LEVIN_DDP_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

/// Options of the strategy horovod.
struct HorovodConfig {
#define LEVIN_HOROVOD_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

/// Options of the strategy bagua.
struct BaguaConfig {
#define LEVIN_BAGUA_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

/// Options of the strategy fsdp; state_dict_type also of zero_1 and zero_2.
struct FsdpConfig {
#define LEVIN_FSDP_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

/// Options of the strategy pipeline.
struct PipelineConfig {
#define LEVIN_PIPELINE_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

}  // namespace levin
