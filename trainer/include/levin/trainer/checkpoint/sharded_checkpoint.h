#pragma once
// Sharded checkpoints of FullyShardedDataParallel: each rank writes its own file, and nothing is gathered.
//
// The folder is a sharded checkpoint (checkpoint.h) of a module and its optimizer: read_checkpoint also reads it, and
// load_sharded_checkpoint also reads checkpoints that the Trainer saved with --fsdp-state-dict-type sharded.

#include <levin/distributed/fsdp.h>

#include <string>

namespace levin {

/// Collective: all ranks of the group must call it and share one file system. The folder appears atomically when all
/// files are written; if a rank cannot write its file, all ranks throw IoError and the previous folder is intact.
void save_sharded_checkpoint(const std::string& folder, const distributed::FullyShardedDataParallel& fsdp,
                             const optim::Optimizer& optimizer, distributed::ProcessGroup& group);

/// Loads this rank's shards, for any number of saving ranks and any division of modules into units. Holds one file in
/// memory at a time and communicates with no other rank. Throws IoError if files are missing or damaged and StateError
/// if they belong to another network.
void load_sharded_checkpoint(const std::string& folder, distributed::FullyShardedDataParallel& fsdp,
                             optim::Optimizer& optimizer);

}  // namespace levin
