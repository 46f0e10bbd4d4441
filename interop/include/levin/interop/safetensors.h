#pragma once
// safetensors (huggingface.co/docs/safetensors) is a file format of names, types, shapes and bytes, without code. It
// serves to exchange weights with Python.

#include <levin/core/io.h>
#include <levin/core/state_dict.h>

#include <map>
#include <string>

namespace levin::interop {

/// The content of a file.
struct Safetensors {
  StateDict tensors;                            ///< in the order of the file's data
  std::map<std::string, std::string> metadata;  ///< free text
};

/// Arguments of load_safetensors.
struct SafetensorsOptions {
  /// Maps the file into memory instead of reading it: opening takes no longer for more data, pages are read on first
  /// use, and processes share them. Writes to such a tensor are private to the process. The file must not be shortened
  /// while a tensor lives; save_safetensors replaces it, which is harmless. Tensors of type BOOL are read at once,
  /// since their values are checked, and so are those that are not aligned.
  bool mmap = false;
};

/// Returns the bytes of the file. Tensors are ordered by decreasing element size, then by name, so that all data is
/// aligned. Throws ValueError for duplicate names and for an undefined tensor.
io::Bytes encode_safetensors(const StateDict& tensors, const std::map<std::string, std::string>& metadata = {});

/// Parses the bytes of a file; `what` names it in errors. The header is not trusted: throws IoError with one sentence
/// when it is malformed or longer than 100,000,000 bytes, or when it has a duplicate name, sizes that overflow, or
/// offsets that do not cover the data exactly once.
Safetensors decode_safetensors(std::span<const std::byte> data, const std::string& what);

/// Writes the file atomically (io::write_file). Throws as encode_safetensors, and IoError if it cannot be written.
void save_safetensors(const std::string& path, const StateDict& tensors,
                      const std::map<std::string, std::string>& metadata = {});
/// Reads a file. Throws IoError for a missing or malformed one, see decode_safetensors.
Safetensors load_safetensors(const std::string& path, const SafetensorsOptions& options = {});

}  // namespace levin::interop
