#pragma once
// The work of one epoch, shared by a loader and its threads: a sequence of turns, each of which may return a batch.

#include <levin/data/dataloader.h>

#include <exception>
#include <string>

namespace levin::data::detail {

class LoadJob {
 public:
  virtual ~LoadJob() = default;
  /// Loads a turn. Called once for each, possibly for later turns before earlier ones are done. Returns nothing for a
  /// shard that is at its end.
  virtual std::optional<Batch> load(int64_t turn) const = 0;
  /// Returns a description for messages, such as "batch 2 (from index 4)".
  virtual std::string describe(int64_t turn) const = 0;
  /// Calls load() and page-locks the batch if pin_memory is set.
  std::optional<Batch> run(int64_t turn) const;

  int64_t turns = 0;
  DType default_dtype = DType::f32;  ///< default dtype of the consumer's thread; workers adopt it
  bool pin_memory = false;
};

/// Loads batches of a map-style dataset.
class MapJob final : public LoadJob {
 public:
  std::optional<Batch> load(int64_t turn) const override;
  std::string describe(int64_t turn) const override;
  std::span<const int64_t> indices_of(int64_t turn) const;

  DatasetPtr dataset;
  std::vector<int64_t> order;   ///< indices of the epoch
  std::vector<int64_t> starts;  ///< beginning of each batch in `order`, and the end of the last
  Collate collate;
  Generator epoch_rng;  ///< forked by index for each sample
};

/// Loads the samples of these indices, each with the random numbers of its index, and sets current_index meanwhile.
std::vector<Sample> load_samples(const Dataset& dataset, std::span<const int64_t> indices, const Generator& epoch_rng);

/// Rethrows the exception being handled with `where` before its text: Levin's errors with their type, others nested in
/// an Error.
[[noreturn]] void rethrow_from(const std::string& where);

/// Returns "index 7" or "sample 3 of shard 1" if known, else "batch 3".
std::string place_of_failure(int64_t turn);

}  // namespace levin::data::detail
