#pragma once
// The bytes of a checkpoint. What is saved and when is decided elsewhere (Trainer, CheckpointPolicy).
//
// A checkpoint is a folder: model.safetensors (the module's parameters and buffers under PyTorch's names),
// state.safetensors (the optimizers' tensors, gradients of an unfinished accumulation window), state.json (everything
// that is a number, the version of the format, the sizes and checksums of the others). A sharded one has
// part-<r>-of-<n>.safetensors of each rank in place of model.safetensors and of the optimizers' tensors.

#include <levin/core/io.h>
#include <levin/core/state_dict.h>
#include <levin/distributed/shard.h>
#include <levin/trainer/state_map.h>

#include <filesystem>

namespace levin {

struct Checkpoint {
  StateDict model;
  StateDict tensors;
  StateMap values;
  /// What this rank alone writes of a sharded checkpoint, as "model.<name>" or by the name in `tensors`. One that was
  /// read has all of it in the others.
  std::vector<distributed::Shard> shards{};

  /// Holds no optimizer: training cannot go on from it.
  bool weights_only() const { return values.has("weights_only"); }
  /// Of the module that was saved; empty when it had none.
  StateMap hparams() const { return values.part("hparams"); }
};

/// The version that is written. Older ones are read, and what they lack is filled in.
inline constexpr int kCheckpointVersion = 2;

/// The files' contents; a copy of all values, so that training may go on while it is written.
struct EncodedCheckpoint {
  io::Bytes model, tensors;
  std::string values;  // JSON
};
EncodedCheckpoint encode_checkpoint(const Checkpoint& checkpoint);

/// Writes the folder as one: after a failure (IoError names it and its size) the former one under this name is still
/// whole.
void write_checkpoint(const std::filesystem::path& folder, const EncodedCheckpoint& checkpoint);
void write_checkpoint(const std::filesystem::path& folder, const Checkpoint& checkpoint);

/// Reads a folder, or what the pointer `last` names; a sharded one becomes whole. Throws IoError where a file is
/// missing or damaged (sizes and checksums are checked before anything is used) and StateError where a newer version
/// wrote it.
Checkpoint read_checkpoint(const std::filesystem::path& folder);

/// Removes a checkpoint, or a pointer to one; anything else stays. Throws IoError.
void remove_checkpoint(const std::filesystem::path& folder);

/// Puts right what a process that was killed while saving left in a folder of checkpoints.
void recover_checkpoints(const std::filesystem::path& directory);

}  // namespace levin
