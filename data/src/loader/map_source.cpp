#include "batch_source.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::data::detail {

namespace {

class MapSource final : public BatchSource {
 public:
  MapSource(DatasetPtr dataset, const DataLoaderOptions& options, OrderSeed seed)
      : dataset_(std::move(dataset)), options_(options), seed_(std::move(seed)), runner_(options) {
    if (!dataset_ || dataset_->size() < 1) {
      throw ValueError("[dataloader] the dataset is empty; there is nothing to load.");
    }
    choose_sampler();
    if (batches() >= 1 || (options.num_replicas > 1 && !options.pad)) return;  // a share may be empty
    if (options.batch_sampler)
      throw ValueError("[dataloader] the batch sampler has no batches; there is nothing to load.");
    throw ValueError(fmt::format("[dataloader] {} samples make no batch of {}{}; use a smaller batch_size.", samples(),
                                 options.batch_size, options.drop_last ? " with drop_last" : ""));
  }

  std::optional<int64_t> size() const override { return batches(); }
  bool can_jump() const override { return true; }
  const DatasetPtr& dataset() const override { return dataset_; }
  std::unique_ptr<BatchSource> share(const DataLoaderOptions& options) const override {
    return std::make_unique<MapSource>(dataset_, options, seed_);
  }

  LoaderState fresh(int64_t epoch) const override {
    return {.epoch = epoch, .samples = samples(), .batch_size = batch_size()};
  }

  void check(const LoaderState& place) const override {
    if (place.samples != samples() || place.batch_size != batch_size()) {
      throw StateError(
          fmt::format("[dataloader] the state is of {} samples in batches of {}, this loader has {} in batches "
                      "of {}. Resume with the same data and batch size.",
                      place.samples, place.batch_size, samples(), batch_size()));
    }
    if (place.epoch < 0 || place.batches < 0 || place.batches > batches()) refuse_damaged_place(place, batches());
  }

  void put_seeds(LoaderState& place) const override {
    place.seed = seed_.value();
    if (const auto seed = seed_of_sampler()) place.sampler_seed = seed->value();
  }

  void take_seeds(const LoaderState& place) override {
    seed_ = place.seed;
    if (const auto seed = seed_of_sampler()) seed->assign(place.sampler_seed.value_or(0));
    choose_sampler();
  }

  void start(const LoaderState& place) override {
    place_ = place;
    runner_.start(make_job(place.epoch), place.batches);
  }

  std::optional<Batch> next() override {
    std::optional<Batch> batch = runner_.next();
    if (batch) ++place_.batches;
    return batch;
  }

  LoaderState place() const override { return place_; }
  void stop() override { runner_.stop(); }

 private:
  std::optional<OrderSeed> seed_of_sampler() const {
    if (options_.sampler) return options_.sampler->seed();
    return options_.batch_sampler ? options_.batch_sampler->seed() : std::nullopt;
  }

  void choose_sampler() {
    const auto& o = options_;
    batch_sampler_ = o.batch_sampler;
    if (batch_sampler_ && o.num_replicas > 1)
      batch_sampler_ = std::make_shared<ShareBatchSampler>(batch_sampler_, o.num_replicas, o.rank, o.pad);
    if (batch_sampler_ || (sampler_ && o.sampler)) return;
    if (o.sampler) {
      sampler_ = o.sampler;
    } else if (o.shuffle) {
      sampler_ = std::make_shared<RandomSampler>(dataset_->size(), seed_);
    } else {
      sampler_ = std::make_shared<SequentialSampler>(dataset_->size());
    }
    if (o.num_replicas > 1) sampler_ = std::make_shared<ShareSampler>(sampler_, o.num_replicas, o.rank, o.pad);
  }

  /// Batch size; 0 with a batch sampler.
  int64_t batch_size() const { return batch_sampler_ ? 0 : options_.batch_size; }
  int64_t samples() const { return batch_sampler_ ? dataset_->size() : sampler_->size(); }
  int64_t batches() const {
    if (batch_sampler_) return batch_sampler_->size();
    const int64_t n = sampler_->size(), b = options_.batch_size;
    return options_.drop_last ? n / b : (n + b - 1) / b;
  }

  std::shared_ptr<const LoadJob> make_job(int64_t epoch) const {
    auto j = std::make_shared<MapJob>();
    j->turns = batches();
    if (batch_sampler_) {
      take_batches(*j, batch_sampler_->batches(epoch));
    } else {
      j->order = sampler_->indices(epoch);
      check_count(static_cast<int64_t>(j->order.size()), sampler_->size(), "sampler gave {} indices");
      for (int64_t b = 0; b <= j->turns; ++b) j->starts.push_back(std::min(b * options_.batch_size, samples()));
    }
    const int64_t n = dataset_->size();
    for (const int64_t i : j->order) {
      if (i < 0 || i >= n) {
        throw IndexError(fmt::format("[dataloader] the sampler gave index {}, but the dataset has {} samples.", i, n));
      }
    }
    j->dataset = dataset_;
    j->collate = options_.collate;
    j->epoch_rng = Generator(seed_.value()).fork(static_cast<std::uint64_t>(epoch), kAugmentStream);
    j->default_dtype = default_dtype();
    j->pin_memory = options_.pin_memory;
    return j;
  }

  void take_batches(MapJob& job, const std::vector<std::vector<int64_t>>& lists) const {
    check_count(static_cast<int64_t>(lists.size()), job.turns, "batch sampler gave {} batches");
    job.starts.push_back(0);
    for (const auto& list : lists) {
      if (list.empty()) {
        throw ValueError(
            fmt::format("[dataloader] batch {} of the batch sampler is empty; give each one index or more.",
                        job.starts.size() - 1));
      }
      job.order.insert(job.order.end(), list.begin(), list.end());
      job.starts.push_back(static_cast<int64_t>(job.order.size()));
    }
  }

  static void check_count(int64_t given, int64_t promised, const char* what) {
    if (given == promised) return;
    throw ValueError(
        fmt::format("[dataloader] the {} but its size is {}.", fmt::format(fmt::runtime(what), given), promised));
  }

  DatasetPtr dataset_;
  const DataLoaderOptions& options_;
  OrderSeed seed_;
  std::shared_ptr<const BatchSampler> batch_sampler_;  // yields the batches of this rank
  std::shared_ptr<const Sampler> sampler_;             // yields the indices of this rank; null with a batch sampler
  JobRunner runner_;
  LoaderState place_;
};

}  // namespace

std::unique_ptr<BatchSource> make_map_source(DatasetPtr dataset, const DataLoaderOptions& options, OrderSeed seed) {
  return std::make_unique<MapSource>(std::move(dataset), options, std::move(seed));
}

}  // namespace levin::data::detail
