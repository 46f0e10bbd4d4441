#pragma once
// Several processes with a replica each, whose gradients are averaged while backward runs.

#include <levin/trainer/strategy.h>

namespace levin {

/// Whether this is ddp under one of its names: "ddp", or with what Lightning's names add to it.
bool is_ddp(const std::string& name);

/// Joins the processes of the run, or starts them; `devices` are those of this machine, one a process.
std::unique_ptr<Strategy> make_ddp(const std::string& name, const std::vector<Device>& devices,
                                   const StrategyOptions& options);

}  // namespace levin
