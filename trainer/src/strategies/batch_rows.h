#pragma once
// Batches that are cut into parts by their rows.

#include <levin/core/error.h>
#include <levin/data/batch.h>

#include <fmt/format.h>

namespace levin {

/// Throws UsageError for a batch that says its number of samples itself: its rows are others.
inline void refuse_stated_samples(const Batch& batch, const char* strategy) {
  if (batch.samples < 0) return;
  throw UsageError(
      fmt::format("[{}] a batch says that it has {} samples, so its tensors cannot be cut into parts by their rows. "
                  "Use --strategy ddp.",
                  strategy, batch.samples));
}

}  // namespace levin
