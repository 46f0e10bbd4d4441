#pragma once
// The bytes of a checkpoint. What is saved and when is decided elsewhere (Trainer, CheckpointPolicy).
//
// A checkpoint is a folder: model.safetensors (the module's parameters and buffers under PyTorch's names),
// state.safetensors (the optimizer's tensors, gradients of an unfinished accumulation window), state.json (everything
// that is a number, with the sizes and checksums of the other two).

#include <levin/core/state_dict.h>
#include <levin/trainer/state_map.h>

#include <filesystem>

namespace levin {

struct Checkpoint {
  StateDict model;
  StateDict tensors;
  StateMap values;
};

/// Writes the folder as one: after a failure (IoError names it) the former one under this name is still whole.
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// Reads a folder, or what the pointer `last` names. Throws IoError where a file is missing or damaged (sizes and
/// checksums are checked before anything is used) and StateError where a newer version wrote it.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

}  // namespace levin
