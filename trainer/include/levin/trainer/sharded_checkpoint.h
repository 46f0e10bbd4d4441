#pragma once
// What FullyShardedDataParallel divides, as files of which each rank writes its own; nothing is gathered.
//
// A folder has a file a rank, rank-<r>-of-<n>.safetensors: pieces of parameters ("model.<name>") and of the optimizer's
// state ("optimizer.state.<name>.<slot>"), each (own elements) with the place of its first element in the parameter
// ("model.begin.<name>"). Buffers, numbers of steps and settings are in the file of rank 0.

#include <levin/distributed/fsdp.h>

#include <filesystem>

namespace levin {

/// All ranks of the group call, and see one folder. The folder appears as one when all files are there; where a rank
/// cannot write its own, all throw IoError and what was there before is whole.
void save_sharded_checkpoint(const std::filesystem::path& folder, const distributed::FullyShardedDataParallel& fsdp,
                             const optim::Optimizer& optimizer, distributed::ProcessGroup& group);

/// Takes this rank's parts, whatever the number of ranks that saved and however modules are divided into units. All
/// ranks call. Throws IoError for files that are missing or damaged and StateError for those of another network.
void load_sharded_checkpoint(const std::filesystem::path& folder, distributed::FullyShardedDataParallel& fsdp,
                             optim::Optimizer& optimizer, distributed::ProcessGroup& group);

}  // namespace levin
