#pragma once
// Checkpoints of which each rank writes its part, part-<r>-of-<n>.safetensors. Together with state.json and
// state.safetensors, which are rank zero's, the parts stand for a whole checkpoint.
//
// A part has tensors by the name "model.<name>" or by that of Checkpoint::tensors. Of a tensor that is divided it has
// some elements (n), and under "place.<that name>" the place of the first and the sizes of the whole (1 + dimensions).

#include <levin/trainer/checkpoint.h>
#include <levin/trainer/strategy.h>

#include <nlohmann/json.hpp>

#include <map>
#include <optional>

namespace levin {

/// Who writes, and how they tell each other.
struct CheckpointRanks {
  int rank, size;
  std::function<std::vector<StateMap>(const StateMap& own)> gather;  ///< the maps of all, by rank
};

/// All ranks call, each with its own shards; the rest is rank zero's. The folder appears as one when all parts are
/// there. Where a rank cannot write, all throw the same IoError, and what was there before is whole.
void write_shards(const std::filesystem::path& folder, const Checkpoint& checkpoint, const CheckpointRanks& ranks);

/// Writes as the strategy says: each rank its part, or rank zero all. All ranks call; the folder is there afterwards.
void write_checkpoint(Strategy& strategy, const std::filesystem::path& folder, const Checkpoint& checkpoint);

void add_shards(Checkpoint& checkpoint, const std::string& prefix, std::vector<distributed::Shard> shards);

/// This rank's part of the weights. Where all ranks have them `whole`, an even share of each parameter.
std::vector<distributed::Shard> weight_shards(const Strategy& strategy, const nn::Module& module,
                                              const StateDict& whole);

/// Puts tensors together from parts.
class ShardJoiner {
 public:
  struct Range {
    std::int64_t begin, end;
  };
  /// Which elements of a tensor are wanted, as (end - begin); nothing for all, in the tensor's shape.
  using Choose = std::function<std::optional<Range>(const std::string& name, const Shape& sizes)>;

  explicit ShardJoiner(std::filesystem::path folder, Choose choose = {})
      : folder_(std::move(folder)), choose_(std::move(choose)) {}
  void take(const StateDict& part, const std::string& file);
  /// By name. Throws IoError where elements are missing.
  StateDict joined() const;

 private:
  struct Wanted {
    Shape sizes;  // of the whole tensor
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

/// Gives the joiner all parts that `files`, of state.json, names. Throws IoError that names a part which is missing,
/// damaged, or of another checkpoint.
void join_parts(const std::filesystem::path& folder, const nlohmann::json& files, ShardJoiner& joiner);

}  // namespace levin
