#pragma once
// One epoch's work, shared by a loader and its threads: a row of turns, each of which may give a batch.

#include <levin/data/dataloader.h>

#include <exception>
#include <string>

namespace levin::data::detail {

class LoadJob {
 public:
  virtual ~LoadJob() = default;
  /// Called once for each turn, for later turns possibly before earlier ones are done. Nothing comes from a shard that
  /// is at its end.
  virtual std::optional<Batch> load(int64_t turn) const = 0;
  /// "batch 2 (from index 4)"
  virtual std::string describe(int64_t turn) const = 0;
  /// load(), page-locked where that was asked for.
  std::optional<Batch> run(int64_t turn) const;

  int64_t turns = 0;
  DType default_dtype = DType::f32;  ///< of the thread that walks; workers take it over
  bool pin_memory = false;
};

/// Indices of a dataset.
class MapJob final : public LoadJob {
 public:
  std::optional<Batch> load(int64_t turn) const override;
  std::string describe(int64_t turn) const override;
  std::span<const int64_t> indices_of(int64_t turn) const;

  DatasetPtr dataset;
  std::vector<int64_t> order;   ///< indices of the epoch
  std::vector<int64_t> starts;  ///< where each batch begins in `order`, and the end of the last one
  Collate collate;
  Generator epoch_rng;  ///< forked by index for each sample
};

/// Throws the exception being handled again, its text headed by where it came from: Levin's errors with their type,
/// others nested in an Error.
[[noreturn]] void rethrow_from(const std::string& where);

/// "index 7" or "sample 3 of shard 1" if known, else "batch 3".
std::string place_of_failure(int64_t turn);

}  // namespace levin::data::detail
