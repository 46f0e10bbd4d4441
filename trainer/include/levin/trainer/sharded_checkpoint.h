#pragma once
// What FullyShardedDataParallel divides, as files of which each rank writes its own; nothing is gathered.
//
// The folder is a sharded checkpoint (checkpoint.h) of a module and its optimizer: read_checkpoint reads it too, and
// load_sharded_checkpoint what the Trainer saves under --fsdp-state-dict-type sharded.

#include <levin/distributed/fsdp.h>

#include <filesystem>

namespace levin {

/// All ranks of the group call, and see one folder. The folder appears as one when all files are there; where a rank
/// cannot write its own, all throw IoError and what was there before is whole.
void save_sharded_checkpoint(const std::filesystem::path& folder, const distributed::FullyShardedDataParallel& fsdp,
                             const optim::Optimizer& optimizer, distributed::ProcessGroup& group);

/// Takes this rank's parts, whatever the number of ranks that saved and however modules are divided into units. Holds
/// one file at a time, and asks no other rank. Throws IoError for files that are missing or damaged and StateError for
/// those of another network.
void load_sharded_checkpoint(const std::filesystem::path& folder, distributed::FullyShardedDataParallel& fsdp,
                             optim::Optimizer& optimizer);

}  // namespace levin
