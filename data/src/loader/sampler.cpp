#include <levin/core/error.h>
#include <levin/data/sampler.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace levin::data {

namespace {

std::vector<int64_t> count_to(int64_t n) {
  std::vector<int64_t> list(static_cast<std::size_t>(n));
  std::iota(list.begin(), list.end(), 0);
  return list;
}

void shuffle(std::vector<int64_t>& list, Generator& rng) {
  for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[rng.below(i)]);
}

Generator of_epoch(std::uint64_t seed, int64_t epoch) {
  return Generator(seed).fork(static_cast<std::uint64_t>(epoch));
}

}  // namespace

std::vector<int64_t> permutation(int64_t n, Generator& rng) {
  std::vector<int64_t> list = count_to(n);
  shuffle(list, rng);
  return list;
}

BatchSampler::BatchSampler(std::shared_ptr<const Sampler> sampler, int64_t batch_size, bool drop_last)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  if (batch_size < 1) throw ValueError(fmt::format("[batch_sampler] batch_size is {}; use 1 or more.", batch_size));
}

int64_t BatchSampler::size() const {
  return drop_last_ ? sampler_->size() / batch_size_ : (sampler_->size() + batch_size_ - 1) / batch_size_;
}

std::vector<std::vector<int64_t>> BatchSampler::batches(int64_t epoch) const {
  const std::vector<int64_t> order = sampler_->indices(epoch);
  std::vector<std::vector<int64_t>> list;
  for (auto from = order.begin(); static_cast<int64_t>(list.size()) < size();) {
    const auto to = from + std::min(batch_size_, order.end() - from);
    list.emplace_back(from, to);
    from = to;
  }
  return list;
}

std::optional<OrderSeed> BatchSampler::seed() const { return sampler_ ? sampler_->seed() : std::nullopt; }

std::vector<int64_t> SequentialSampler::indices(int64_t) const { return count_to(n_); }

RandomSampler::RandomSampler(int64_t n, OrderSeed seed, const RandomSamplerOptions& options)
    : n_(n),
      seed_(std::move(seed)),
      replacement_(options.replacement),
      num_samples_(options.num_samples < 0 ? n : options.num_samples) {
  if (n < 1) throw ValueError(fmt::format("[random_sampler] there are {} samples to choose from; give 1 or more.", n));
}

std::vector<int64_t> RandomSampler::indices(int64_t epoch) const {
  Generator rng = of_epoch(seed_.value(), epoch);
  std::vector<int64_t> list;
  list.reserve(static_cast<std::size_t>(num_samples_));
  if (replacement_) {
    while (static_cast<int64_t>(list.size()) < num_samples_) {
      list.push_back(static_cast<int64_t>(rng.below(static_cast<std::uint64_t>(n_))));
    }
    return list;
  }
  while (static_cast<int64_t>(list.size()) < num_samples_) {
    const std::vector<int64_t> order = permutation(n_, rng);
    const int64_t take = std::min(n_, num_samples_ - static_cast<int64_t>(list.size()));
    list.insert(list.end(), order.begin(), order.begin() + take);
  }
  return list;
}

std::vector<int64_t> SubsetSampler::indices(int64_t epoch) const {
  std::vector<int64_t> list = indices_;
  if (shuffle_) {
    Generator rng = of_epoch(seed_.value(), epoch);
    shuffle(list, rng);
  }
  return list;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, OrderSeed seed,
                                             const WeightedRandomSamplerOptions& options)
    : weights_(std::move(weights)),
      num_samples_(num_samples),
      seed_(std::move(seed)),
      replacement_(options.replacement) {
  int64_t positive = 0;
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (!(weights_[i] >= 0) || !std::isfinite(weights_[i])) {
      throw ValueError(fmt::format("[weighted_random_sampler] weight {} is {}; weights are finite and 0 or more.", i,
                                   weights_[i]));
    }
    positive += weights_[i] > 0;
    sum += weights_[i];
    cumulative_.push_back(sum);
  }
  const int64_t needed = replacement_ ? 1 : num_samples;
  if (num_samples < 1 || positive < needed) {
    throw ValueError(fmt::format("[weighted_random_sampler] {} samples {} replacement cannot be drawn from {} positive "
                                 "weights.",
                                 num_samples, replacement_ ? "with" : "without", positive));
  }
}

std::vector<int64_t> WeightedRandomSampler::indices(int64_t epoch) const {
  Generator rng = of_epoch(seed_.value(), epoch);
  const auto wanted = static_cast<std::size_t>(num_samples_);
  if (replacement_) {
    std::vector<int64_t> list(wanted);
    for (int64_t& index : list) {
      // Takes the first sum beyond the point, which never belongs to a weight of zero.
      const double point = rng.uniform() * cumulative_.back();
      const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), point);
      index = found - cumulative_.begin();
    }
    return list;
  }
  std::vector<double> keys(weights_.size(), -INFINITY);  // log(u) / w: the highest keys win
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const double u = 1 - rng.uniform();
    if (weights_[i] > 0) keys[i] = std::log(u) / weights_[i];
  }
  std::vector<int64_t> list = count_to(static_cast<int64_t>(keys.size()));
  std::stable_sort(list.begin(), list.end(), [&](int64_t a, int64_t b) {
    return keys[static_cast<std::size_t>(a)] > keys[static_cast<std::size_t>(b)];
  });
  list.resize(wanted);
  return list;
}

namespace {

void check_rank(const char* who, int num_replicas, int rank) {
  if (num_replicas < 1 || rank < 0 || rank >= num_replicas) {
    throw ValueError(fmt::format("[{}] rank {} of {} does not exist; ranks count from 0.", who, rank, num_replicas));
  }
}

int64_t share_size(int64_t n, int64_t replicas, int64_t rank, bool pad) {
  return (n + replicas - 1 - (pad ? 0 : rank)) / replicas;
}

/// Returns every replicas-th element of `all`, which wraps around to its beginning.
template <class T>
std::vector<T> share(const std::vector<T>& all, int64_t size, int64_t replicas, int64_t rank) {
  std::vector<T> own;
  for (int64_t i = 0; i < size; ++i) own.push_back(all[static_cast<std::size_t>(i * replicas + rank) % all.size()]);
  return own;
}

}  // namespace

ShareSampler::ShareSampler(std::shared_ptr<const Sampler> all, int num_replicas, int rank, bool pad)
    : all_(std::move(all)), replicas_(num_replicas), rank_(rank), pad_(pad) {
  check_rank("share_sampler", num_replicas, rank);
}

int64_t ShareSampler::size() const { return share_size(all_->size(), replicas_, rank_, pad_); }
std::vector<int64_t> ShareSampler::indices(int64_t epoch) const {
  return share(all_->indices(epoch), size(), replicas_, rank_);
}

ShareBatchSampler::ShareBatchSampler(std::shared_ptr<const BatchSampler> all, int num_replicas, int rank, bool pad)
    : all_(std::move(all)), replicas_(num_replicas), rank_(rank), pad_(pad) {
  check_rank("share_batch_sampler", num_replicas, rank);
}

int64_t ShareBatchSampler::size() const { return share_size(all_->size(), replicas_, rank_, pad_); }
std::vector<std::vector<int64_t>> ShareBatchSampler::batches(int64_t epoch) const {
  return share(all_->batches(epoch), size(), replicas_, rank_);
}

DistributedSampler::DistributedSampler(int64_t n, int num_replicas, int rank, const DistributedSamplerOptions& options)
    : n_(n), replicas_(num_replicas), rank_(rank), options_(options) {
  check_rank("distributed_sampler", num_replicas, rank);
}

int64_t DistributedSampler::size() const {
  return options_.drop_last ? n_ / replicas_ : share_size(n_, replicas_, rank_, options_.pad);
}

std::vector<int64_t> DistributedSampler::indices(int64_t epoch) const {
  std::vector<int64_t> common = count_to(n_);
  if (options_.shuffle) {
    Generator rng = of_epoch(options_.seed, epoch);
    shuffle(common, rng);
  }
  return share(common, size(), replicas_, rank_);
}

}  // namespace levin::data
