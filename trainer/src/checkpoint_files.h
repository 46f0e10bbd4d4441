#pragma once
// What whole checkpoints and those in parts have in common on the disk.

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

/// The size and the checksum of a file, as state.json has them.
nlohmann::json describe(const io::Bytes& bytes);
/// The contents of state.json.
std::string values_file(const nlohmann::json& files, const nlohmann::json& values);
/// state.json, when its format, version and checksum are right. Throws IoError and StateError.
nlohmann::json read_values(const std::filesystem::path& folder);
/// One of the files that `files` describes. Throws IoError where it is another.
StateDict read_tensors(const std::filesystem::path& folder, const std::string& name, const nlohmann::json& files);

[[noreturn]] void damaged(const std::filesystem::path& folder, const std::string& how);

/// io::write_folder; IoError names the folder, and `size` where it is not empty.
void write_as_one(const std::filesystem::path& folder, const std::string& size,
                  const std::function<void(const std::filesystem::path&)>& fill);

}  // namespace levin::checkpoint_files
