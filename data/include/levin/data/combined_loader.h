#pragma once
// Several loaders read as one.

#include <levin/data/dataloader.h>

namespace levin::data {

/// How the loaders are combined; names and meanings are Lightning's.
enum class CombinedMode {
  min_size,        ///< a batch of each, until the shortest ends
  max_size_cycle,  ///< a batch of each, until the longest ends; shorter ones restart
  max_size,        ///< a batch of each, until the longest ends; those that ended give an empty part
  sequential,      ///< one after the other; Batch::dataloader_idx names the loader
};

/// Parses "min_size", "max_size_cycle", "max_size" or "sequential"; throws ValueError for another text.
CombinedMode parse_combined_mode(std::string_view text);

/// A batch holds the tensors of all loaders one after the other: `batch.part(i)` is the batch of loader i, with its
/// keys. Its size is the sum of their sizes. Epoch e reads epoch e of every loader; a loader that restarted for the
/// c-th time is in epoch e + c * 2^32, so its order differs.
class CombinedLoader final : public DataLoader {
 public:
  /// Nothing else may read the loaders at the same time. Throws ValueError without loaders.
  explicit CombinedLoader(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode = CombinedMode::min_size);

 private:
  class Source;
  static std::unique_ptr<Impl> make(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode);
};

}  // namespace levin::data
