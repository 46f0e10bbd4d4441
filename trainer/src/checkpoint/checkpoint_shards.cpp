#include "src/checkpoint/checkpoint_shards.h"

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>
#include <levin/interop/safetensors.h>

#include <fmt/format.h>

#include <set>

#include "src/checkpoint/checkpoint_files.h"
#include "src/checkpoint/state_json.h"
#include "src/strategies/rank_strategy.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using distributed::ProcessGroup;
using distributed::Shard;
using nlohmann::json;

constexpr const char* kPart = "part-";
constexpr const char* kPlace = "place.";

std::string part_name(int rank, int size) { return fmt::format("{}{}-of-{}.safetensors", kPart, rank, size); }

StateDict tensors_of(const std::vector<Shard>& shards) {
  StateDict out;
  for (const Shard& s : shards) {
    out.merge("", {{s.name, s.values}});
    if (s.values.sizes() == s.sizes) continue;
    std::vector<std::int64_t> place(s.sizes.begin(), s.sizes.end());
    place.insert(place.begin(), s.begin);
    out.merge(kPlace, {{s.name, from_data(place, {static_cast<std::int64_t>(place.size())})}});
  }
  return out;
}

/// Writes this rank's part; returns the metadata of all parts.
std::vector<StateMap> write_part(const fs::path& to, const std::vector<Shard>& shards, ProcessGroup& group) {
  StateMap own;
  try {
    const io::Bytes bytes = interop::encode_safetensors(tensors_of(shards));
    const std::string name = part_name(group.rank(), group.size());
    io::write_file(to / name, bytes);
    own.set("file", name);
    own.set("description", checkpoint_files::describe(bytes).dump());
  } catch (const std::exception& e) {
    own.set("error", fmt::format("Rank {}: {}", group.rank(), e.what()));
  }
  return gather_maps(group, own);
}

/// Written by rank zero when all parts are written.
void write_common(const fs::path& to, const Checkpoint& c, const std::vector<StateMap>& parts) {
  json files;
  for (const StateMap& part : parts) {
    if (part.has("error")) throw IoError(part.get<std::string>("error"));
    files[part.get<std::string>("file")] = json::parse(part.get<std::string>("description"));
  }
  const io::Bytes tensors = interop::encode_safetensors(c.tensors);
  files[checkpoint_files::kTensors] = checkpoint_files::describe(tensors);
  io::write_file(to / checkpoint_files::kTensors, tensors);
  io::write_file(to / checkpoint_files::kValues, checkpoint_files::values_file(files, to_json(c.values)));
}

}  // namespace

void write_shards(const fs::path& folder, const Checkpoint& c, ProcessGroup& group) {
  StateMap outcome;
  if (group.rank() != 0) {
    const StateMap first = gather_maps(group, {}).front();
    if (first.has("folder")) write_part(first.get<std::string>("folder"), c.shards, group);
  } else {
    bool told = false;
    try {
      checkpoint_files::write_as_one(folder, {}, [&](const fs::path& to) {
        told = true;
        gather_maps(group, {{"folder", fs::absolute(to).string()}});
        write_common(to, c, write_part(to, c.shards, group));
      });
    } catch (const IoError& e) {
      if (!told) gather_maps(group, {});
      outcome.set("error", std::string(e.what()));
    }
  }
  outcome = gather_maps(group, outcome).front();
  if (outcome.has("error")) throw IoError(outcome.get<std::string>("error"));
}

bool saves_shards(Strategy& strategy) {
  const auto* sharded = strategy.sharded_optimizer();
  return sharded && sharded->saves_shards();
}

void write_checkpoint(Strategy& strategy, const fs::path& folder, const Checkpoint& c) {
  if (saves_shards(strategy)) return write_shards(folder, c, *strategy.process_group());
  if (strategy.is_global_zero()) write_checkpoint(folder, c);
  strategy.barrier();
}

void add_shards(Checkpoint& c, const std::string& prefix, std::vector<Shard> shards) {
  for (Shard& s : shards) {
    s.name = prefix + s.name;
    c.shards.push_back(std::move(s));
  }
}

std::vector<Shard> weight_shards(Strategy& strategy, const nn::Module& module, const StateDict& full) {
  if (const auto* sharded = strategy.sharded_weights()) return sharded->weight_shards(module);
  const no_grad guard;
  const std::int64_t rank = strategy.rank(), size = strategy.world_size();
  std::set<std::string> parameters;
  for (const auto& [name, p] : module.named_parameters()) parameters.insert(name);
  std::vector<Shard> own;
  for (const auto& [name, t] : full) {
    const std::int64_t begin = t.numel() * rank / size, end = t.numel() * (rank + 1) / size;
    if (parameters.contains(name) && t.numel() > 0) {
      const Tensor flat = t.detach().contiguous().view({-1});
      if (begin < end) own.push_back({name, flat.narrow(0, begin, end - begin), begin, t.sizes()});
    } else if (rank == 0) {
      own.push_back({name, t, 0, t.sizes()});
    }
  }
  return own;
}

void ShardJoiner::take(const StateDict& part, const std::string& file) {
  const no_grad guard;
  std::map<std::string, Tensor> places;
  for (const auto& [name, place] : part)
    if (name.starts_with(kPlace)) places[name.substr(std::string_view(kPlace).size())] = place;
  for (const auto& [name, values] : part) {
    if (name.starts_with(kPlace)) continue;
    const auto place = places.find(name);
    take(name, values, place == places.end() ? nullptr : &place->second, file);
  }
}

ShardJoiner::Wanted& ShardJoiner::wanted(const std::string& name, const Shape& sizes, const Tensor& values) {
  const auto found = wanted_.find(name);
  if (found != wanted_.end()) return found->second;
  const auto chosen = choose_ ? choose_(name, sizes) : std::nullopt;
  const Range range = chosen.value_or(Range{0, sizes.numel()});
  const Shape into = chosen ? Shape{range.end - range.begin} : sizes;
  return wanted_.emplace(name, Wanted{sizes, range, empty(into, like(values))}).first->second;
}

void ShardJoiner::take(const std::string& name, const Tensor& values, const Tensor* place, const std::string& file) {
  std::int64_t begin = 0;
  Shape sizes = values.sizes();
  if (place != nullptr) {
    const auto numbers = place->to_vector<std::int64_t>();
    if (numbers.empty()) checkpoint_files::damaged(folder_, fmt::format("{} has no offset of \"{}\"", file, name));
    begin = numbers.front();
    sizes = Shape(numbers.begin() + 1, numbers.end());
  }
  Wanted& w = wanted(name, sizes, values);
  const std::int64_t end = begin + values.numel();
  if (begin < 0 || end > sizes.numel() || sizes != w.sizes || values.dtype() != w.into.dtype())
    checkpoint_files::damaged(folder_, fmt::format("in {} \"{}\" is not a part of the tensor", file, name));
  const std::int64_t low = std::max(begin, w.range.begin), high = std::min(end, w.range.end);
  if (low >= high) return;
  const Tensor to = w.into.view({-1}).narrow(0, low - w.range.begin, high - low);
  to.copy_(values.view({-1}).narrow(0, low - begin, high - low));
  w.filled += high - low;
}

StateDict ShardJoiner::joined() const {
  StateDict out;
  for (const auto& [name, w] : wanted_) {
    if (w.filled != w.range.end - w.range.begin)
      checkpoint_files::damaged(folder_, fmt::format("elements of \"{}\" are missing", name));
    out.merge("", {{name, w.into}});
  }
  return out;
}

void join_parts(const fs::path& folder, const json& files, ShardJoiner& joiner) {
  int size = 0;
  for (const auto& [name, file] : files.items()) size += name.starts_with(kPart) ? 1 : 0;
  if (size == 0)
    throw IoError(
        fmt::format("[checkpoint] {} has no part files. Give the folder of a sharded checkpoint.", folder.string()));
  for (const auto& entry : fs::directory_iterator(folder))
    if (const std::string name = entry.path().filename().string(); name.starts_with(kPart) && !files.contains(name))
      checkpoint_files::damaged(folder, fmt::format("{} is not one of its {} parts", name, size));
  for (int r = 0; r < size; ++r) {
    const std::string name = part_name(r, size);
    joiner.take(checkpoint_files::read_tensors(folder, name, files), name);
  }
}

}  // namespace levin
