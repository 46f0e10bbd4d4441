#include <levin/data/dataloader.h>

#include "load_job.h"
#include "worker_pool.h"

#include <fmt/format.h>

#include <algorithm>

namespace levin::data {

namespace {

void check_options(const DataLoaderOptions& o) {
  const auto require = [](bool good, const std::string& text) {
    if (!good) throw ValueError("[dataloader] " + text);
  };
  require(o.batch_size >= 1, fmt::format("batch_size is {}; use 1 or more.", o.batch_size));
  require(o.num_workers >= 0, fmt::format("num_workers is {}; use 0 or more.", o.num_workers));
  require(o.prefetch_factor >= 1, fmt::format("prefetch_factor is {}; use 1 or more.", o.prefetch_factor));
  require(o.timeout >= 0, fmt::format("timeout is {} s; use 0 (none) or more.", o.timeout));
  require(!(o.shuffle && o.sampler), "shuffle and a sampler were both given; the sampler already decides the order.");
}

std::shared_ptr<const Sampler> choose_sampler(const DataLoaderOptions& o, int64_t size, std::uint64_t seed) {
  if (o.sampler) return o.sampler;
  if (o.shuffle) return std::make_shared<RandomSampler>(size, seed);
  return std::make_shared<SequentialSampler>(size);
}

/// Augmentations get another stream than the shuffle.
constexpr std::uint64_t kAugmentStream = 0x617567;

}  // namespace

struct DataLoader::Impl {
  Impl(DatasetPtr d, const DataLoaderOptions& o)
      : dataset(std::move(d)), options(o), seed(o.seed.value_or(default_generator().seed())) {
    check_options(options);
    if (!dataset || dataset->size() < 1) {
      throw ValueError("[dataloader] the dataset is empty; there is nothing to load.");
    }
    sampler = choose_sampler(options, dataset->size(), seed);
    if (batches() < 1) {
      throw ValueError(fmt::format("[dataloader] {} samples make no batch of {}{}; use a smaller batch_size.",
                                   sampler->size(), options.batch_size, options.drop_last ? " with drop_last" : ""));
    }
  }

  int64_t batches() const {
    const int64_t n = sampler->size(), b = options.batch_size;
    return options.drop_last ? n / b : (n + b - 1) / b;
  }

  /// Chooses where the walk begins and starts the workers.
  void begin_walk() {
    if (walking && !chosen) {  // the walk before was left early
      ++epoch;
      first = 0;
    }
    chosen = false;
    walking = true;
    ++walk;
    running_epoch = epoch;
    delivered = first;
    job = make_job();
    if (options.num_workers > 0) {
      if (!pool || pool->abandoned()) {
        const int64_t ahead = static_cast<int64_t>(options.num_workers) * options.prefetch_factor;
        pool = std::make_unique<detail::WorkerPool>(options.num_workers, ahead);
      }
      pool->start(job, first);
    }
  }

  std::shared_ptr<const detail::LoadJob> make_job() const {
    auto j = std::make_shared<detail::LoadJob>();
    j->dataset = dataset;
    j->order = sampler->indices(running_epoch);
    j->batch_size = options.batch_size;
    j->batches = batches();
    j->collate = options.collate;
    j->epoch_rng = Generator(seed).fork(static_cast<std::uint64_t>(running_epoch), kAugmentStream);
    j->default_dtype = default_dtype();
    if (static_cast<int64_t>(j->order.size()) != sampler->size()) {
      throw ValueError(fmt::format("[dataloader] the sampler gave {} indices but its size is {}.", j->order.size(),
                                   sampler->size()));
    }
    const int64_t n = dataset->size();
    for (const int64_t i : j->order) {
      if (i < 0 || i >= n) {
        throw IndexError(fmt::format("[dataloader] the sampler gave index {}, but the dataset has {} samples.", i, n));
      }
    }
    return j;
  }

  Batch load(int64_t batch) {
    if (options.num_workers > 0) {
      Batch loaded = pool->next(options.timeout);
      delivered = batch + 1;
      return loaded;
    }
    try {
      Batch loaded = job->load(batch);
      delivered = batch + 1;
      return loaded;
    } catch (...) {
      detail::rethrow_from(fmt::format("[dataloader] {}: ", detail::place_of_failure(batch)));
    }
  }

  void end_walk() {
    walking = false;
    if (!chosen) {
      epoch = running_epoch + 1;
      first = 0;
    }
    job.reset();
    if (!options.persistent_workers) pool.reset();
  }

  DatasetPtr dataset;
  DataLoaderOptions options;
  std::uint64_t seed;
  std::shared_ptr<const Sampler> sampler;
  std::unique_ptr<detail::WorkerPool> pool;
  std::shared_ptr<const detail::LoadJob> job;

  int64_t epoch = 0, first = 0;  // of the next walk
  bool chosen = false;           // by set_epoch, load_state or begin_at
  bool walking = false;
  int64_t running_epoch = 0, delivered = 0;
  std::uint64_t walk = 0;        // tells the iterators apart
};

DataLoader::DataLoader(DatasetPtr dataset, const DataLoaderOptions& options)
    : impl_(std::make_unique<Impl>(std::move(dataset), options)) {}
DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

DataLoader::Iterator DataLoader::begin() {
  impl_->begin_walk();
  return Iterator(impl_.get(), impl_->walk, impl_->delivered);
}

DataLoader::Iterator DataLoader::begin_at(int64_t batch) {
  if (batch < 0 || batch > size()) {
    throw IndexError(fmt::format("[dataloader] batch {} does not exist: an epoch has {}.", batch, size()));
  }
  if (impl_->walking && !impl_->chosen) ++impl_->epoch;
  impl_->first = batch;
  impl_->chosen = true;
  return begin();
}

int64_t DataLoader::size() const { return impl_->batches(); }
const DatasetPtr& DataLoader::dataset() const { return impl_->dataset; }
const DataLoaderOptions& DataLoader::options() const { return impl_->options; }
int64_t DataLoader::epoch() const { return impl_->walking && !impl_->chosen ? impl_->running_epoch : impl_->epoch; }

void DataLoader::set_epoch(int64_t epoch) {
  if (epoch < 0) throw ValueError(fmt::format("[dataloader] epoch is {}; use 0 or more.", epoch));
  if (!impl_->chosen || impl_->epoch != epoch) impl_->first = 0;
  impl_->epoch = epoch;
  impl_->chosen = true;
}

LoaderState DataLoader::state() const {
  const bool running = impl_->walking && !impl_->chosen;
  return {.epoch = running ? impl_->running_epoch : impl_->epoch,
          .batches = running ? impl_->delivered : impl_->first,
          .seed = impl_->seed,
          .samples = impl_->sampler->size(),
          .batch_size = impl_->options.batch_size};
}

void DataLoader::load_state(const LoaderState& state) {
  if (state.samples != impl_->sampler->size() || state.batch_size != impl_->options.batch_size) {
    throw StateError(
        fmt::format("[dataloader] the state is of {} samples in batches of {}, this loader has {} in batches "
                    "of {}. Resume with the same data and batch size.",
                    state.samples, state.batch_size, impl_->sampler->size(), impl_->options.batch_size));
  }
  if (state.epoch < 0 || state.batches < 0 || state.batches > size()) {
    throw StateError(
        fmt::format("[dataloader] the state names batch {} of epoch {}, but an epoch has {} batches. It is "
                    "damaged.",
                    state.batches, state.epoch, size()));
  }
  if (impl_->seed != state.seed) {
    impl_->seed = state.seed;
    impl_->sampler = choose_sampler(impl_->options, impl_->dataset->size(), state.seed);
  }
  impl_->epoch = state.epoch;
  impl_->first = state.batches;
  impl_->chosen = true;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (walk_ != impl_->walk) {
    throw Error("[dataloader] another walk over this loader has begun; use a second DataLoader for two at once.");
  }
  ++index_;
  batch_ = {};
  if (index_ >= impl_->batches()) {
    done_ = true;
    impl_->end_walk();
  } else {
    batch_ = impl_->load(index_);
  }
  return *this;
}

}  // namespace levin::data
