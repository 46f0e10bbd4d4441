#include <levin/core/warning.h>
#include <levin/data/dataloader.h>
#include <levin/kernels/cuda.h>

#include "loader_impl.h"

#include <fmt/format.h>

#include <thread>

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
  require(o.num_replicas >= 1 && o.rank >= 0 && o.rank < o.num_replicas,
          fmt::format("rank {} of {} does not exist; ranks count from 0.", o.rank, o.num_replicas));
  require(!(o.shuffle && o.sampler), "shuffle and a sampler were both given; the sampler already decides the order.");
  require(!o.batch_sampler || (o.batch_size == 1 && !o.shuffle && !o.sampler && !o.drop_last),
          "a batch sampler was given together with batch_size, shuffle, sampler or drop_last; it already decides all "
          "of these.");
}

/// Turns off options that this machine does not support.
DataLoaderOptions usable(DataLoaderOptions o) {
  check_options(o);
  if (o.pin_memory && !cuda::is_available()) {
    warn_once("[dataloader] pin_memory does nothing here: there is no CUDA device to copy to.");
    o.pin_memory = false;
  }
  return o;
}

OrderSeed seed_of(const DataLoaderOptions& o) {
  if (o.seed) return *o.seed;
  return o.shuffle ? OrderSeed() : OrderSeed::of_default_generator();
}

}  // namespace

void DataLoader::Impl::begin_walk() {
  if (walking && !chosen) next_place = source->fresh(source->place().epoch + 1);  // the loop was left early
  chosen = false;
  walking = true;
  ++walk;
  times = {};
  began = clock();
  source->start(next_place);
}

std::optional<Batch> DataLoader::Impl::pull() {
  const double before = clock();
  std::optional<Batch> batch = source->next();
  const double after = clock();
  times.wait += after - before;
  times.total = after - began;
  if (batch) {
    ++times.batches;
    return batch;
  }
  walking = false;
  if (!chosen) next_place = source->fresh(source->place().epoch + 1);
  source->stop();
  return batch;
}

DataLoader::DataLoader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  impl_->next_place = impl_->source->fresh(0);
}

DataLoader::DataLoader(DatasetPtr dataset, const DataLoaderOptions& options)
    : impl_(std::make_unique<Impl>(usable(options))) {
  impl_->source = detail::make_map_source(std::move(dataset), impl_->options, seed_of(options));
  impl_->next_place = impl_->source->fresh(0);
}

DataLoader::DataLoader(IterablePtr dataset, const DataLoaderOptions& options)
    : impl_(std::make_unique<Impl>(usable(options))) {
  impl_->source = detail::make_stream_source(std::move(dataset), impl_->options, seed_of(options));
  impl_->next_place = impl_->source->fresh(0);
}

DataLoader::DataLoader(DataLoader&&) noexcept = default;
DataLoader& DataLoader::operator=(DataLoader&&) noexcept = default;
DataLoader::~DataLoader() = default;

DataLoader::Iterator DataLoader::begin() {
  impl_->begin_walk();
  return Iterator(impl_.get(), impl_->walk, impl_->source->place().batches);
}

DataLoader::Iterator DataLoader::begin_at(int64_t batch) {
  const auto length = impl_->source->size();
  if (batch < 0 || (length && batch > *length)) {
    throw IndexError(fmt::format("[dataloader] batch {} does not exist: an epoch has {}.", batch,
                                 length ? std::to_string(*length) : "no known length"));
  }
  LoaderState place = impl_->source->fresh(impl_->running() ? epoch() + 1 : epoch());
  if (impl_->source->can_jump()) place.batches = batch;
  impl_->choose(place);
  impl_->begin_walk();
  while (impl_->source->place().batches < batch && impl_->pull()) {
  }
  return Iterator(impl_.get(), impl_->walk, impl_->source->place().batches);
}

bool DataLoader::has_size() const { return impl_->source->size().has_value(); }

int64_t DataLoader::size() const {
  if (const auto length = impl_->source->size()) return *length;
  throw UsageError(
      "[dataloader] the length of an iterable dataset is known only by walking over it. Ask has_size() first, or give "
      "a "
      "number of batches.");
}

const DatasetPtr& DataLoader::dataset() const { return impl_->source->dataset(); }
const DataLoaderOptions& DataLoader::options() const { return impl_->options; }
int64_t DataLoader::epoch() const { return impl_->place().epoch; }

void DataLoader::set_epoch(int64_t epoch) {
  if (epoch < 0) throw ValueError(fmt::format("[dataloader] epoch is {}; use 0 or more.", epoch));
  if (impl_->chosen && impl_->next_place.epoch == epoch) return;
  impl_->choose(impl_->source->fresh(epoch));
}

std::shared_ptr<DataLoader> DataLoader::share_of(int num_replicas, int rank, bool pad) const {
  DataLoaderOptions options = impl_->options;
  options.num_replicas = num_replicas;
  options.rank = rank;
  options.pad = pad;
  auto impl = std::make_unique<Impl>(usable(options));
  impl->source = impl_->source->share(impl->options);
  std::shared_ptr<DataLoader> share(new DataLoader(std::move(impl)));
  share->set_epoch(epoch());
  return share;
}

LoaderState DataLoader::state() const {
  LoaderState state = impl_->place();
  impl_->source->put_seeds(state);
  return state;
}

void DataLoader::load_state(const LoaderState& state) {
  impl_->source->check(state);
  impl_->source->take_seeds(state);
  impl_->choose(state);
}

void DataLoader::take_seeds(const LoaderState& state) { impl_->source->take_seeds(state); }

LoaderTimes DataLoader::times() const {
  LoaderTimes t = impl_->times;
  if (impl_->walking) t.total = impl_->clock() - impl_->began;
  return t;
}

std::string DataLoader::wait_advice(double threshold) const {
  constexpr int64_t enough = 10;
  const LoaderTimes t = times();
  if (t.batches < enough || t.share() <= threshold) return {};
  const unsigned cores = std::thread::hardware_concurrency();
  return fmt::format(
      "[dataloader] {:.0f} % of the last {:.2g} s went by waiting for data, with num_workers = {}. Raise it (this "
      "machine has {} cores), or preload the data.",
      100 * t.share(), t.total, impl_->options.num_workers, cores);
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (walk_ != impl_->walk) {
    throw Error("[dataloader] another iteration over this loader has begun; use a second DataLoader for it.");
  }
  ++index_;
  batch_ = {};
  std::optional<Batch> batch = done_ ? std::nullopt : impl_->pull();
  done_ = !batch;
  if (batch) batch_ = std::move(*batch);
  return *this;
}

}  // namespace levin::data
