#pragma once
// Encoding of checkpoints. Trainer and CheckpointPolicy decide what is saved and when.
//
// A checkpoint is a folder: model.safetensors (the module's parameters and buffers under PyTorch's names),
// state.safetensors (the optimizers' tensors, gradients of an unfinished accumulation window), state.json (all numbers,
// the version of the format, the sizes and checksums of the other files). A sharded checkpoint has one
// part-<r>-of-<n>.safetensors per rank in place of model.safetensors and of the optimizers' tensors.

#include <levin/core/io.h>
#include <levin/core/state_dict.h>
#include <levin/core/state_map.h>
#include <levin/distributed/shard.h>

#include <string>

namespace levin {

/// The contents of a checkpoint.
struct Checkpoint {
  StateDict model;    ///< parameters and buffers under PyTorch's names; of 16-o2 the float32 masters
  StateDict tensors;  ///< state of optimizers, schedulers and callbacks, and gradients of an open accumulation window
  StateMap values;    ///< numbers and texts: position, random generators, states of callbacks, hyper-parameters
  /// This rank's part of a sharded checkpoint, named "model.<name>" or as in `tensors`. Empty after reading, which
  /// merges all shards into `model` and `tensors`.
  std::vector<distributed::Shard> shards{};

  /// True if the state of training was left out, so training cannot resume from it.
  bool weights_only() const { return values.has("weights_only"); }
  /// Hyper-parameters of the saved module; empty if it had none.
  StateMap hparams() const { return values.part("hparams"); }
};

/// Version that is written. Older versions can be read; their missing values are filled in.
inline constexpr int kCheckpointVersion = 2;

/// Encoded contents of the files: `model` and `tensors` in the format of safetensors, `values` as JSON. A copy of all
/// values, so training may continue while it is written.
struct EncodedCheckpoint {
  io::Bytes model, tensors;
  std::string values;
};
/// Copies tensors to the host and encodes everything.
EncodedCheckpoint encode_checkpoint(const Checkpoint& checkpoint);

/// Writes the folder atomically: after a failure (IoError with the folder and its size) the previous folder of that
/// name is intact.
void write_checkpoint(const std::string& folder, const EncodedCheckpoint& checkpoint);
void write_checkpoint(const std::string& folder, const Checkpoint& checkpoint);

/// Reads a folder, or the target of the pointer `last`. Shards are merged into full tensors. Throws IoError if a file
/// is missing or damaged (sizes and checksums are verified first) and StateError if a newer version wrote it.
Checkpoint read_checkpoint(const std::string& folder);

/// Removes a checkpoint or a pointer to one; leaves anything else alone. Throws IoError.
void remove_checkpoint(const std::string& folder);

/// Cleans up a folder of checkpoints after a process was killed while saving.
void recover_checkpoints(const std::string& directory);

}  // namespace levin
