#include <levin/trainer/checkpoint.h>

#include <levin/interop/safetensors.h>

#include <fmt/format.h>

#include "state_json.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr const char* kFormat = "levin-checkpoint";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kTensors = "state.safetensors";
constexpr const char* kValues = "state.json";

json describe(const io::Bytes& bytes) { return {{"bytes", bytes.size()}, {"crc32", io::crc32(bytes)}}; }

std::uint32_t checksum(const json& j) {
  const std::string text = j.dump();
  return io::crc32(std::as_bytes(std::span(text)));
}

[[noreturn]] void damaged(const fs::path& folder, const std::string& how) {
  throw IoError(fmt::format("[checkpoint] {} is damaged: {}. Resume from another checkpoint.", folder.string(), how));
}

json read_values(const fs::path& folder) {
  const json root = json::parse(io::read_text(folder / kValues), nullptr, false);
  if (!root.is_object() || root.value("format", "") != kFormat) damaged(folder, "state.json is not a checkpoint's");
  if (root.value("version", 0) != kVersion)
    throw StateError(
        fmt::format("[checkpoint] {} has version {}, this program reads {}. Use the program that wrote it.",
                    folder.string(), root.value("version", 0), kVersion));
  if (!root.contains("values") || !root.contains("files") || root.value("crc32", std::uint32_t{0}) !=
      checksum({root["files"], root["values"]}))
    damaged(folder, "the checksum of state.json does not fit");
  return root;
}

StateDict read_tensors(const fs::path& folder, const char* name, const json& files) {
  const io::Bytes bytes = io::read_file(folder / name);
  const auto entry = files.find(name);
  if (entry == files.end() || *entry != describe(bytes))
    damaged(folder, fmt::format("{} ({} bytes) is not the file that was saved, its size or checksum differs", name,
                                bytes.size()));
  return interop::decode_safetensors(bytes, (folder / name).string()).tensors;
}

}  // namespace

void write_checkpoint(const fs::path& folder, const Checkpoint& c) {
  const io::Bytes model = interop::encode_safetensors(c.model, {{"format", "pt"}});
  const io::Bytes tensors = interop::encode_safetensors(c.tensors);
  json root = {{"format", kFormat}, {"version", kVersion}};
  root["files"] = {{kModel, describe(model)}, {kTensors, describe(tensors)}};
  root["values"] = to_json(c.values);
  root["crc32"] = checksum({root["files"], root["values"]});
  try {
    fs::create_directories(fs::absolute(folder).parent_path());
    io::write_folder(folder, [&](const fs::path& to) {
      io::write_file(to / kModel, model);
      io::write_file(to / kTensors, tensors);
      io::write_file(to / kValues, root.dump(1) + "\n");
    });
  } catch (const fs::filesystem_error& e) {
    throw IoError(fmt::format("[checkpoint] {} was not saved: {}. Choose another folder.", folder.string(),
                              e.code().message()));
  } catch (const IoError& e) {
    throw IoError(fmt::format("[checkpoint] {} was not saved; what was there before is whole. {}", folder.string(),
                              e.what()));
  }
}

Checkpoint read_checkpoint(const fs::path& folder) {
  if (!fs::is_symlink(folder)) io::recover_folder(folder);
  if (!fs::is_directory(folder))
    throw IoError(fmt::format("[checkpoint] {} is no folder. Give the folder of a checkpoint.", folder.string()));
  try {
    const json root = read_values(folder);
    return {read_tensors(folder, kModel, root["files"]), read_tensors(folder, kTensors, root["files"]),
            state_from_json(root["values"])};
  } catch (const json::exception&) {
    damaged(folder, "state.json has values of the wrong type");
  }
}

}  // namespace levin
