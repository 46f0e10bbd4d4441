#pragma once
// Splits batches into parts by rows.

#include <levin/core/error.h>
#include <levin/data/batch.h>

#include <fmt/format.h>

namespace levin {

/// Throws UsageError for a batch that states its number of samples, since its rows are not samples.
inline void refuse_stated_samples(const Batch& batch, const char* strategy) {
  if (batch.samples < 0) return;
  throw UsageError(
      fmt::format("[{}] a batch says that it has {} samples, so its tensors cannot be split by rows. Use "
                  "--strategy ddp.",
                  strategy, batch.samples));
}

}  // namespace levin
