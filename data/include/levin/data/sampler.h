#pragma once
// Samplers define the order in which a data loader reads a dataset. A sampler has no position: the order is a function
// of its seed and the epoch, so that a checkpoint needs only these. A sampler that is given no seed draws one from the
// default generator at its first use.

#include <levin/core/generator.h>
#include <levin/data/order_seed.h>

#include <optional>
#include <vector>

namespace levin::data {

using std::int64_t;

/// An order of indices for each epoch. Derive from it to define another order.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// Number of indices in one epoch.
  virtual int64_t size() const = 0;
  /// The indices of an epoch (0 or more), in order.
  virtual std::vector<int64_t> indices(int64_t epoch) const = 0;
  /// The seed of the order, which loaders keep in checkpoints and share over ranks; nothing for an order without one. A
  /// sampler that takes its order from another one returns that one's.
  virtual std::optional<OrderSeed> seed() const { return std::nullopt; }
};

/// Batches of indices: those of a sampler, `batch_size` at a time. Derive from it to form batches otherwise.
class BatchSampler {
 public:
  /// With `drop_last`, a last batch that is not full is left out. Throws ValueError for a batch_size below 1.
  BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last);
  virtual ~BatchSampler() = default;
  /// Number of batches in one epoch.
  virtual int64_t size() const;
  /// The batches of an epoch (0 or more), in order; none is empty.
  virtual std::vector<std::vector<int64_t>> batches(int64_t epoch) const;
  /// As Sampler::seed.
  virtual std::optional<OrderSeed> seed() const;

 protected:
  BatchSampler() = default;

 private:
  std::shared_ptr<const Sampler> sampler_;
  int64_t batch_size_ = 1;
  bool drop_last_ = false;
};

/// Returns 0 to n - 1 in random order (Fisher-Yates shuffle).
std::vector<int64_t> permutation(int64_t n, Generator& rng);

/// The order 0, 1, 2, ..., n - 1.
class SequentialSampler final : public Sampler {
 public:
  explicit SequentialSampler(int64_t n) : n_(n) {}
  int64_t size() const override { return n_; }
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  int64_t n_;
};

/// Options of RandomSampler.
struct RandomSamplerOptions {
  bool replacement = false;   ///< draw each index independently
  int64_t num_samples = -1;   ///< -1 means n; beyond n without replacement, further permutations follow
};

/// A new random order in each epoch.
class RandomSampler final : public Sampler {
 public:
  /// Chooses from the indices 0 to n - 1. Throws ValueError for an n below 1.
  explicit RandomSampler(int64_t n, OrderSeed seed = {}, const RandomSamplerOptions& options = {});
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> indices(int64_t epoch) const override;
  std::optional<OrderSeed> seed() const override { return seed_; }

 private:
  int64_t n_;
  OrderSeed seed_;
  bool replacement_;
  int64_t num_samples_;
};

/// The given indices only, in their order or shuffled in each epoch.
class SubsetSampler : public Sampler {
 public:
  /// The seed has no effect unless `shuffle`.
  explicit SubsetSampler(std::vector<int64_t> indices, bool shuffle = false, OrderSeed seed = {})
      : indices_(std::move(indices)), shuffle_(shuffle), seed_(std::move(seed)) {}
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> indices(int64_t epoch) const override;
  std::optional<OrderSeed> seed() const override { return shuffle_ ? std::optional(seed_) : std::nullopt; }

 private:
  std::vector<int64_t> indices_;
  bool shuffle_;
  OrderSeed seed_;
};

/// The given indices only, in a new random order in each epoch.
class SubsetRandomSampler final : public SubsetSampler {
 public:
  /// The seed defines the orders of all epochs.
  explicit SubsetRandomSampler(std::vector<int64_t> indices, OrderSeed seed = {})
      : SubsetSampler(std::move(indices), true, std::move(seed)) {}
};

/// Options of WeightedRandomSampler.
struct WeightedRandomSamplerOptions {
  bool replacement = true;  ///< draws each index independently; otherwise an index comes once at most
};

/// Draws num_samples indices with probabilities proportional to `weights`, one weight for each index; without
/// replacement by the method of Efraimidis and Spirakis, "Weighted random sampling with a reservoir" (2006).
class WeightedRandomSampler final : public Sampler {
 public:
  /// Throws ValueError for weights that are negative, not finite or all zero, or too few for the samples.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, OrderSeed seed = {},
                        const WeightedRandomSamplerOptions& options = {});
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> indices(int64_t epoch) const override;
  std::optional<OrderSeed> seed() const override { return seed_; }

 private:
  std::vector<double> weights_, cumulative_;
  int64_t num_samples_;
  OrderSeed seed_;
  bool replacement_;
};

/// Every num_replicas-th index of another sampler's order, beginning with `rank`. With `pad`, the first indices are
/// repeated at the end, so that all ranks get equally many.
class ShareSampler final : public Sampler {
 public:
  /// Throws ValueError for a rank outside of [0, num_replicas).
  ShareSampler(std::shared_ptr<const Sampler> all, int num_replicas, int rank, bool pad);
  int64_t size() const override;
  std::vector<int64_t> indices(int64_t epoch) const override;
  std::optional<OrderSeed> seed() const override { return all_->seed(); }

 private:
  std::shared_ptr<const Sampler> all_;
  int64_t replicas_, rank_;
  bool pad_;
};

/// Every num_replicas-th batch of another batch sampler, as ShareSampler.
class ShareBatchSampler final : public BatchSampler {
 public:
  /// Throws ValueError for a rank outside of [0, num_replicas).
  ShareBatchSampler(std::shared_ptr<const BatchSampler> all, int num_replicas, int rank, bool pad);
  int64_t size() const override;
  std::vector<std::vector<int64_t>> batches(int64_t epoch) const override;
  std::optional<OrderSeed> seed() const override { return all_->seed(); }

 private:
  std::shared_ptr<const BatchSampler> all_;
  int64_t replicas_, rank_;
  bool pad_;
};

/// Options of DistributedSampler.
struct DistributedSamplerOptions {
  bool shuffle = true;      ///< a new random order in each epoch; otherwise 0, 1, 2, ...
  std::uint64_t seed = 0;   ///< the same on all ranks; as in PyTorch it is never drawn
  bool drop_last = false;   ///< drop the tail that does not divide evenly
  /// Repeats indices so that all ranks get equally many; use false for evaluation, where no sample may count twice.
  bool pad = true;
};

/// Every num_replicas-th index of one common order of 0 to n - 1, beginning with `rank`.
class DistributedSampler final : public Sampler {
 public:
  /// Throws ValueError for a rank outside of [0, num_replicas).
  DistributedSampler(int64_t n, int num_replicas, int rank, const DistributedSamplerOptions& options = {});
  int64_t size() const override;
  std::vector<int64_t> indices(int64_t epoch) const override;

 private:
  int64_t n_, replicas_, rank_;
  DistributedSamplerOptions options_;
};

}  // namespace levin::data
