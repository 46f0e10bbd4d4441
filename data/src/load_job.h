#pragma once
// One epoch's work, shared by the loader and its threads.

#include <levin/data/dataloader.h>

#include <exception>
#include <string>

namespace levin::data::detail {

struct LoadJob {
  DatasetPtr dataset;
  std::vector<int64_t> order;  ///< indices of the epoch
  int64_t batch_size = 1;
  int64_t batches = 0;
  std::function<Batch(std::span<const Sample>)> collate;
  Generator epoch_rng;         ///< forked by index for each sample
  DType default_dtype = DType::f32;

  std::span<const int64_t> indices_of(int64_t batch) const;
  Batch load(int64_t batch) const;
};

/// Throws the exception being handled again, its text headed by where it came from: Levin's errors with their type,
/// others nested in an Error.
[[noreturn]] void rethrow_from(const std::string& where);

/// "index 7" if known, else "batch 3".
std::string place_of_failure(int64_t batch);

}  // namespace levin::data::detail
