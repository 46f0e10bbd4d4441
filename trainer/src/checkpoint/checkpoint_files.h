#pragma once
// File format shared by full and sharded checkpoints.

#include <levin/core/io.h>
#include <levin/core/state_dict.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace levin::checkpoint_files {

inline constexpr const char* kModel = "model.safetensors";
inline constexpr const char* kTensors = "state.safetensors";
inline constexpr const char* kValues = "state.json";

/// Returns a file's size and checksum as state.json stores them.
nlohmann::json describe(const io::Bytes& bytes);
/// Returns the contents of state.json.
std::string values_file(const nlohmann::json& files, const nlohmann::json& values);
/// Reads state.json and verifies its format, version and checksum. Throws IoError and StateError.
nlohmann::json read_values(const std::filesystem::path& folder);
/// Reads a file listed in `files`. Throws IoError if its size or checksum differs.
StateDict read_tensors(const std::filesystem::path& folder, const std::string& name, const nlohmann::json& files);

[[noreturn]] void damaged(const std::filesystem::path& folder, const std::string& how);

/// Calls io::write_folder; an IoError names the folder and `size`, if that is not empty.
void write_as_one(const std::filesystem::path& folder, const std::string& size,
                  const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace levin::checkpoint_files
