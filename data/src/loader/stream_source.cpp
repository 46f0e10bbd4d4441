// Batches of iterable datasets. Turn t is batch t / shards of shard t % shards, so the batches do not depend on the
// workers; a shard that is at its end returns nothing in its turns.

#include "batch_source.h"
#include "current_index.h"

#include <fmt/format.h>

#include <condition_variable>
#include <limits>
#include <mutex>

namespace levin::data {

void SampleStream::skip(int64_t count) {
  while (count-- > 0 && next()) {
  }
}

namespace detail {

namespace {

/// A shard being read. The worker with the shard's next turn reads; workers with later turns wait.
struct Shard {
  int64_t number = 0;  ///< index of the shard in the dataset
  std::mutex mutex;
  std::condition_variable moved;
  int64_t round = 0;  ///< the batch to read next
  bool ended = false;
  std::unique_ptr<SampleStream> stream;
};

class StreamJob final : public LoadJob {
 public:
  StreamJob(IterablePtr dataset, const DataLoaderOptions& options, Generator epoch_rng, int64_t first)
      : dataset_(std::move(dataset)),
        batch_size_(options.batch_size),
        drop_last_(options.drop_last),
        collate_(options.collate ? options.collate : Collate(default_collate)),
        epoch_rng_(epoch_rng) {
    turns = std::numeric_limits<int64_t>::max();
    for (int64_t s = options.rank; s < dataset_->shards(); s += options.num_replicas) {
      shards_.push_back(std::make_unique<Shard>());
      shards_.back()->number = s;
    }
    const auto count = static_cast<int64_t>(shards_.size());
    for (int64_t s = 0; s < count; ++s) shard(s).round = first / count + (s < first % count ? 1 : 0);
  }

  std::optional<Batch> load(int64_t turn) const override {
    const auto count = static_cast<int64_t>(shards_.size());
    Shard& s = shard(turn % count);
    const int64_t round = turn / count;
    std::vector<Sample> samples = read(s, round);
    current_shard = s.number;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      current_index = round * batch_size_ + static_cast<int64_t>(i);
      Generator rng =
          epoch_rng_.fork(static_cast<std::uint64_t>(current_index), static_cast<std::uint64_t>(s.number) + 1);
      samples[i] = dataset_->prepare(std::move(samples[i]), rng);
    }
    current_index = current_shard = -1;
    if (samples.empty()) return std::nullopt;
    return collate_(samples);
  }

  std::string describe(int64_t turn) const override {
    const auto count = static_cast<int64_t>(shards_.size());
    return fmt::format("batch {} of shard {}", turn / count, shard(turn % count).number);
  }

 private:
  Shard& shard(int64_t i) const { return *shards_[static_cast<std::size_t>(i)]; }

  /// Reads a batch of raw samples, which is empty at the end.
  std::vector<Sample> read(Shard& s, int64_t round) const {
    std::unique_lock lock(s.mutex);
    s.moved.wait(lock, [&] { return s.round >= round; });
    std::vector<Sample> samples;
    try {
      if (!s.ended) samples = read_open(s, round);
    } catch (...) {
      s.ended = true;  // otherwise later turns would wait for ever
      ++s.round;
      s.moved.notify_all();
      throw;
    }
    if (s.ended) s.stream.reset();
    ++s.round;
    s.moved.notify_all();
    return samples;
  }

  std::vector<Sample> read_open(Shard& s, int64_t round) const {
    current_shard = s.number;
    current_index = round * batch_size_;
    if (!s.stream) {
      s.stream = dataset_->open(s.number, epoch_rng_.fork(static_cast<std::uint64_t>(s.number), kShardStream));
      if (round > 0) s.stream->skip(round * batch_size_);
    }
    std::vector<Sample> samples;
    for (; static_cast<int64_t>(samples.size()) < batch_size_; ++current_index) {
      std::optional<Sample> sample = s.stream->next();
      if (!sample) {
        s.ended = true;
        break;
      }
      samples.push_back(std::move(*sample));
    }
    if (s.ended && drop_last_) samples.clear();
    current_index = current_shard = -1;
    return samples;
  }

  static constexpr std::uint64_t kShardStream = 0x7368617264;
  IterablePtr dataset_;
  int64_t batch_size_;
  bool drop_last_;
  Collate collate_;
  Generator epoch_rng_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

class StreamSource final : public BatchSource {
 public:
  StreamSource(IterablePtr dataset, const DataLoaderOptions& options, OrderSeed seed)
      : dataset_(std::move(dataset)), options_(options), seed_(std::move(seed)), runner_(options) {
    const auto refuse = [](const std::string& text) { throw ValueError("[dataloader] " + text); };
    if (!dataset_) refuse("the dataset is empty; there is nothing to load.");
    if (options.shuffle || options.sampler || options.batch_sampler) {
      refuse("an iterable dataset has no indices to shuffle or sample; let open() shuffle with its generator.");
    }
    const int64_t all = dataset_->shards();
    if (all < options.num_replicas) {
      refuse(
          fmt::format("{} shards cannot be read by {} ranks; give each rank one or more.", all, options.num_replicas));
    }
    shards_ = (all - options.rank + options.num_replicas - 1) / options.num_replicas;
  }

  std::optional<int64_t> size() const override { return std::nullopt; }
  std::unique_ptr<BatchSource> share(const DataLoaderOptions& options) const override {
    return std::make_unique<StreamSource>(dataset_, options, seed_);
  }

  LoaderState fresh(int64_t epoch) const override {
    return {.epoch = epoch, .samples = shards_, .batch_size = options_.batch_size};
  }

  void check(const LoaderState& place) const override {
    if (place.samples != shards_ || place.batch_size != options_.batch_size) {
      throw StateError(
          fmt::format("[dataloader] the state is of {} shards in batches of {}, this loader has {} in batches of {}. "
                      "Resume with the same data and batch size.",
                      place.samples, place.batch_size, shards_, options_.batch_size));
    }
    if (place.epoch < 0 || place.batches < 0 || place.turns < place.batches) {
      throw StateError(fmt::format("[dataloader] the state names batch {} of epoch {} after {} turns. It is damaged.",
                                   place.batches, place.epoch, place.turns));
    }
  }

  void put_seeds(LoaderState& place) const override { place.seed = seed_.value(); }
  void take_seeds(const LoaderState& place) override { seed_ = place.seed; }

  void start(const LoaderState& place) override {
    place_ = place;
    const Generator rng = Generator(seed_.value()).fork(static_cast<std::uint64_t>(place.epoch), kAugmentStream);
    auto job = std::make_shared<StreamJob>(dataset_, options_, rng, place.turns);
    job->default_dtype = default_dtype();
    job->pin_memory = options_.pin_memory;
    runner_.start(std::move(job), place.turns);
  }

  std::optional<Batch> next() override {
    // All shards are at their end after as many consecutive empty turns as there are shards.
    int64_t turns = place_.turns;
    for (int64_t empty = 0; empty < shards_; ++empty) {
      std::optional<Batch> batch = runner_.next();
      ++turns;
      if (!batch) continue;
      place_.turns = turns;
      ++place_.batches;
      return batch;
    }
    return std::nullopt;
  }

  LoaderState place() const override { return place_; }
  void stop() override { runner_.stop(); }

 private:
  IterablePtr dataset_;
  const DataLoaderOptions& options_;
  OrderSeed seed_;
  int64_t shards_ = 1;  // number of shards of this rank
  JobRunner runner_;
  LoaderState place_;
};

}  // namespace

std::unique_ptr<BatchSource> make_stream_source(IterablePtr dataset, const DataLoaderOptions& options, OrderSeed seed) {
  return std::make_unique<StreamSource>(std::move(dataset), options, std::move(seed));
}

}  // namespace detail
}  // namespace levin::data
