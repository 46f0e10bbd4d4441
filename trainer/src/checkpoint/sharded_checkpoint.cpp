#include <levin/autograd/modes.h>
#include <levin/trainer/checkpoint/sharded_checkpoint.h>

#include <fmt/format.h>

#include <filesystem>

#include "src/checkpoint/checkpoint_files.h"
#include "src/checkpoint/checkpoint_shards.h"

namespace levin {
namespace {

namespace fs = std::filesystem;
using distributed::FullyShardedDataParallel;
using distributed::ProcessGroup;
using distributed::Shard;

/// Selects the elements of a checkpoint's tensors that this rank holds.
class OwnElements {
 public:
  OwnElements(const fs::path& folder, const FullyShardedDataParallel& fsdp, const optim::Optimizer& optimizer)
      : folder_(folder), state_(fsdp.module().state_dict()) {
    for (const auto& [name, t] : fsdp.module().named_buffers()) buffers_[name] = t;
    for (const Shard& s : fsdp.shards()) own_[s.name] = {s.begin, s.begin + s.values.numel()};
    for (const Parameter& p : fsdp.parameters())
      for (const Parameter& stepped : optimizer.parameters())
        if (stepped.is_same(p)) stepped_[stepped.name] = p.name;
  }

  std::optional<ShardJoiner::Range> operator()(const std::string& key, const Shape& sizes) const {
    if (key.starts_with(kModel)) {
      const std::string name = key.substr(kModel.size());
      const Tensor* mine = state_.find(name);
      if (!mine) throw wrong(fmt::format("it has \"{}\"", name));
      if (mine->sizes() != sizes)
        throw wrong(fmt::format("\"{}\" is {} there and {} here", name, to_string(sizes), to_string(mine->sizes())));
      if (buffers_.contains(name)) return std::nullopt;
      return of(name);
    }
    if (!key.starts_with("optimizer.")) return ShardJoiner::Range{0, 0};
    const auto dot = key.rfind('.');
    if (!key.starts_with(kState) || key.substr(dot) == ".step") return std::nullopt;
    const auto stepped = stepped_.find(key.substr(kState.size(), dot - kState.size()));
    return stepped == stepped_.end() ? std::nullopt : of(stepped->second);
  }

  StateError wrong(const std::string& text) const {
    return StateError(fmt::format("[checkpoint] {} is not one of this network: {}.", folder_.string(), text));
  }

 private:
  static constexpr std::string_view kModel = "model.", kState = "optimizer.state.";

  std::optional<ShardJoiner::Range> of(const std::string& name) const {
    const auto found = own_.find(name);
    return found == own_.end() ? ShardJoiner::Range{0, 0} : found->second;
  }

  fs::path folder_;
  StateDict state_;
  std::map<std::string, Tensor> buffers_;
  std::map<std::string, ShardJoiner::Range> own_;
  std::map<std::string, std::string> stepped_;  // maps the optimizer's names to the module's
};

}  // namespace

void save_sharded_checkpoint(const std::string& folder, const FullyShardedDataParallel& fsdp,
                             const optim::Optimizer& optimizer, ProcessGroup& group) {
  Checkpoint c;
  add_shards(c, "model.", fsdp.shards());
  add_shards(c, "optimizer.", fsdp.optimizer_shards(optimizer));
  write_shards(folder, c, group);
}

void load_sharded_checkpoint(const std::string& folder, FullyShardedDataParallel& fsdp, optim::Optimizer& optimizer) {
  const no_grad guard;
  const OwnElements own(folder, fsdp, optimizer);
  ShardJoiner joiner(folder, own);
  join_parts(folder, checkpoint_files::read_values(folder)["files"], joiner);
  const StateDict found = joiner.joined(), weights = found.sub("model.");
  const StateDict state = fsdp.module().state_dict();
  for (const auto& [name, t] : state)
    if (!weights.contains(name)) throw own.wrong(fmt::format("it has no \"{}\"", name));
  optimizer.load_state_dict(found.sub("optimizer."));
  for (const Shard& s : fsdp.shards()) s.values.copy_(weights.at(s.name).view(s.values.sizes()));
  for (const auto& [name, t] : fsdp.module().named_buffers())
    if (const Tensor* saved = weights.find(name)) t.copy_(*saved);
}

}  // namespace levin
