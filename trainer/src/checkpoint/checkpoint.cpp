#include <levin/trainer/checkpoint/checkpoint.h>

#include <levin/interop/safetensors.h>

#include <fmt/format.h>

#include "src/checkpoint/checkpoint_files.h"
#include "src/checkpoint/checkpoint_migration.h"
#include "src/checkpoint/checkpoint_shards.h"
#include "src/checkpoint/state_json.h"
#include "src/logging.h"

namespace levin {

namespace fs = std::filesystem;
using nlohmann::json;

namespace checkpoint_files {
namespace {

constexpr const char* kFormat = "levin-checkpoint";

std::uint32_t checksum(const json& j) {
  const std::string text = j.dump();
  return io::crc32(std::as_bytes(std::span(text)));
}

}  // namespace

json describe(const io::Bytes& bytes) { return {{"bytes", bytes.size()}, {"crc32", io::crc32(bytes)}}; }

void damaged(const fs::path& folder, const std::string& how) {
  throw IoError(fmt::format("[checkpoint] {} is damaged: {}. Resume from another checkpoint.", folder.string(), how));
}

std::string values_file(const json& files, const json& values) {
  json root = {{"format", kFormat}, {"version", kCheckpointVersion}};
  root["files"] = files;
  root["values"] = values;
  root["crc32"] = checksum({root["files"], root["values"]});
  return root.dump(1) + "\n";
}

json read_values(const fs::path& folder) {
  const json root = json::parse(io::read_text(folder / kValues), nullptr, false);
  if (!root.is_object() || root.value("format", "") != kFormat)
    damaged(folder, "state.json does not belong to a checkpoint");
  const int version = root.value("version", 0);
  if (version < 1 || version > kCheckpointVersion)
    throw StateError(
        fmt::format("[checkpoint] {} has version {}, this program reads 1 to {}. Use the program that "
                    "wrote it.",
                    folder.string(), version, kCheckpointVersion));
  if (!root.contains("values") || !root.contains("files") ||
      root.value("crc32", std::uint32_t{0}) != checksum({root["files"], root["values"]}))
    damaged(folder, "the checksum of state.json does not match");
  return root;
}

StateDict read_tensors(const fs::path& folder, const std::string& name, const json& files) {
  const io::Bytes bytes = io::read_file(folder / name);
  const auto entry = files.find(name);
  if (entry == files.end() || *entry != describe(bytes))
    damaged(folder, fmt::format("{} ({} bytes) is not the file that was saved, its size or checksum differs", name,
                                bytes.size()));
  return interop::decode_safetensors(bytes, (folder / name).string()).tensors;
}

void write_as_one(const fs::path& folder, const std::string& size, const std::function<void(const fs::path&)>& fill) {
  try {
    fs::create_directories(fs::absolute(folder).parent_path());
    io::write_folder(folder, fill);
  } catch (const fs::filesystem_error& e) {
    throw IoError(
        fmt::format("[checkpoint] {} was not saved: {}. Choose another folder.", folder.string(), e.code().message()));
  } catch (const IoError& e) {
    throw IoError(fmt::format("[checkpoint] {} was not saved{}; the previous checkpoint is intact. {}", folder.string(),
                              size.empty() ? "" : fmt::format(" ({})", size), e.what()));
  }
}

}  // namespace checkpoint_files

using namespace checkpoint_files;

EncodedCheckpoint encode_checkpoint(const Checkpoint& c) {
  return {interop::encode_safetensors(c.model, {{"format", "pt"}}), interop::encode_safetensors(c.tensors),
          to_json(c.values).dump()};
}

void write_checkpoint(const std::string& folder, const EncodedCheckpoint& c) {
  const std::string values =
      values_file({{kModel, describe(c.model)}, {kTensors, describe(c.tensors)}}, json::parse(c.values));
  const auto size = c.model.size() + c.tensors.size() + values.size();
  write_as_one(folder, fmt::format("{} bytes", size), [&](const fs::path& to) {
    io::write_file(to / kModel, c.model);
    io::write_file(to / kTensors, c.tensors);
    io::write_file(to / kValues, values);
  });
}

void write_checkpoint(const std::string& folder, const Checkpoint& c) {
  write_checkpoint(folder, encode_checkpoint(c));
}

namespace {

void take_parts(Checkpoint& c, const fs::path& folder, const json& files) {
  constexpr std::string_view kOfModel = "model.";
  ShardJoiner joiner(folder);
  join_parts(folder, files, joiner);
  for (const auto& [name, t] : joiner.joined()) {
    const bool of_model = name.starts_with(kOfModel);
    (of_model ? c.model : c.tensors).merge("", {{of_model ? name.substr(kOfModel.size()) : name, t}});
  }
}

}  // namespace

Checkpoint read_checkpoint(const std::string& folder) {
  if (!fs::is_symlink(folder)) io::recover_folder(folder);
  if (!fs::is_directory(folder))
    throw IoError(fmt::format("[checkpoint] {} is not a folder. Give the folder of a checkpoint.", folder));
  try {
    const json root = read_values(folder);
    const json& files = root["files"];
    Checkpoint c;
    c.tensors = read_tensors(folder, kTensors, files);
    c.values = state_from_json(root["values"]);
    if (files.contains(kModel))
      c.model = read_tensors(folder, kModel, files);
    else
      take_parts(c, folder, files);
    migrate(c, root["version"].get<int>());
    return c;
  } catch (const json::exception&) {
    damaged(folder, "state.json has values of the wrong type");
  }
}

void remove_checkpoint(const std::string& folder) {
  if (fs::is_symlink(folder)) {
    fs::remove(folder);
  } else if (fs::exists(fs::path(folder) / kValues)) {
    io::remove_folder(folder);
  }
}

void recover_checkpoints(const std::string& directory) {
  if (!fs::is_directory(directory)) return;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().extension() == ".old" && fs::exists(entry.path() / kValues)) old.push_back(entry.path());
  for (fs::path folder : old) io::recover_folder(folder.replace_extension());
  if (const int strays = io::remove_strays(directory); strays > 0)
    logging::info("{}: removed {} unfinished files of a run that was killed", directory, strays);
}

}  // namespace levin
