#pragma once
// Sharded checkpoints: each rank writes its part, part-<r>-of-<n>.safetensors. Together with state.json and
// state.safetensors, which rank zero writes, the parts form a complete checkpoint.
//
// A part names tensors "model.<name>" or as in Checkpoint::tensors. For a sharded tensor it holds some elements (n),
// and under "place.<that name>" the offset of the first element and the sizes of the full tensor (1 + dimensions).

#include <levin/distributed/shard.h>
#include <levin/trainer/checkpoint/checkpoint.h>
#include <levin/trainer/strategy.h>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <map>
#include <optional>

namespace levin {

/// Collective: each rank passes its own shards; everything else is taken from rank zero. The folder appears atomically
/// when all parts are written. If a rank cannot write, all ranks throw the same IoError and the previous folder is
/// intact.
void write_shards(const std::filesystem::path& folder, const Checkpoint& checkpoint, distributed::ProcessGroup& group);

/// True if each rank writes its own shards, see ShardedOptimizer.
bool saves_shards(Strategy& strategy);

/// Writes shards from each rank or everything from rank zero, as the strategy requires. Collective; the folder exists
/// when it returns.
void write_checkpoint(Strategy& strategy, const std::filesystem::path& folder, const Checkpoint& checkpoint);

void add_shards(Checkpoint& checkpoint, const std::string& prefix, std::vector<distributed::Shard> shards);

/// Returns this rank's shards of the weights. If all ranks have the full weights in `full`, an even share of each
/// parameter.
std::vector<distributed::Shard> weight_shards(Strategy& strategy, const nn::Module& module, const StateDict& full);

/// Assembles tensors from shards.
class ShardJoiner {
 public:
  struct Range {
    std::int64_t begin, end;
  };
  /// Selects the elements of a tensor to load, as (end - begin); empty for all, in the tensor's shape.
  using Choose = std::function<std::optional<Range>(const std::string& name, const Shape& sizes)>;

  explicit ShardJoiner(std::filesystem::path folder, Choose choose = {})
      : folder_(std::move(folder)), choose_(std::move(choose)) {}
  void take(const StateDict& part, const std::string& file);
  /// Returns the tensors by name. Throws IoError if elements are missing.
  StateDict joined() const;

 private:
  struct Wanted {
    Shape sizes;  // of the full tensor
    Range range;
    Tensor into;
    std::int64_t filled = 0;
  };
  Wanted& wanted(const std::string& name, const Shape& sizes, const Tensor& values);
  void take(const std::string& name, const Tensor& values, const Tensor* place, const std::string& file);

  std::filesystem::path folder_;
  Choose choose_;
  std::map<std::string, Wanted> wanted_;
};

/// Passes all parts listed in `files` (from state.json) to the joiner. Throws IoError with the name of a part that is
/// missing, damaged, or from another checkpoint.
void join_parts(const std::filesystem::path& folder, const nlohmann::json& files, ShardJoiner& joiner);

}  // namespace levin
