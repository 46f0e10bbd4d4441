#pragma once
// Options of single strategies, shared by TrainerConfig and FabricConfig. strategy_option_rows.h has their types,
// names, defaults and meanings.

#include <cstdint>
#include <optional>
#include <string>

namespace levin {

struct DdpConfig {
#define LEVIN_DDP_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

struct HorovodConfig {
#define LEVIN_HOROVOD_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

struct BaguaConfig {
#define LEVIN_BAGUA_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

struct FsdpConfig {
#define LEVIN_FSDP_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

struct PipelineConfig {
#define LEVIN_PIPELINE_OPTION(type, name, value, ...) type name = value;
#include <levin/trainer/config/strategy_option_rows.h>
};

}  // namespace levin
