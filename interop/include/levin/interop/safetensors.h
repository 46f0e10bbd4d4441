#pragma once
// safetensors (huggingface.co/docs/safetensors): names, types, shapes and bytes; no code. Weights move to and from
// Python by it.

#include <levin/core/io.h>
#include <levin/core/state_dict.h>

#include <map>
#include <string>

namespace levin::interop {

struct Safetensors {
  StateDict tensors;                            ///< in the order of the file's data
  std::map<std::string, std::string> metadata;  ///< free text
};

/// The file's bytes. Larger element types come first, then names in alphabetical order, so that all data is aligned.
/// Throws ValueError for two equal names and for an undefined tensor.
io::Bytes encode_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata = {});

/// Reads such bytes; `what` names them in errors. Nothing in the header is trusted: throws IoError with one sentence
/// where it is malformed, too long (100,000,000 bytes), holds a repeated name, sizes that overflow, or offsets that do
/// not cover the data exactly once.
Safetensors decode_safetensors(std::span<const std::byte> data, const std::string& what);

/// Writes the file whole or not at all (io::write_file).
void save_safetensors(const std::filesystem::path& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata = {});
Safetensors load_safetensors(const std::filesystem::path& path);

}  // namespace levin::interop
