#pragma once
// Several loaders walked as one.

#include <levin/data/dataloader.h>

namespace levin::data {

/// Lightning's modes.
enum class CombinedMode {
  min_size,        ///< a batch of each, until the shortest ends
  max_size_cycle,  ///< a batch of each, until the longest ends; shorter ones begin anew
  max_size,        ///< a batch of each, until the longest ends; those that ended give an empty part
  sequential,      ///< one after the other; Batch::dataloader_idx tells which
};

/// "min_size", "max_size_cycle", "max_size" or "sequential"; throws ValueError.
CombinedMode parse_combined_mode(std::string_view text);

/// A batch holds the tensors of all loaders one after the other: `batch.part(i)` is loader i's. Its size is the sum of
/// theirs. Epoch e walks epoch e of every loader; a loader that began anew for the c-th time is in epoch e + c * 2^32,
/// so its order differs.
class CombinedLoader final : public DataLoader {
 public:
  /// The loaders must not be walked by others meanwhile. Throws ValueError when there is none.
  explicit CombinedLoader(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode = CombinedMode::min_size);

 private:
  class Source;
  static std::unique_ptr<Impl> make(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode);
};

}  // namespace levin::data
