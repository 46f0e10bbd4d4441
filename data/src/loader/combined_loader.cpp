#include <levin/data/combined_loader.h>

#include "loader_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace levin::data {

namespace {

constexpr int64_t kCycle = int64_t{1} << 32;

/// Joins the tensors of all loaders in one batch.
Batch join(std::vector<std::optional<Batch>>& parts) {
  Batch joined;
  joined.samples = 0;
  for (std::optional<Batch>& part : parts) {
    BatchEntry& entry = joined.entries.emplace_back();
    entry.is_tensor = false;
    if (part) {
      joined.samples += part->size();
      std::move(part->tensors.begin(), part->tensors.end(), std::back_inserter(joined.tensors));
      entry.entries = std::move(part->entries);
    }
    entry.end = static_cast<int>(joined.tensors.size());
  }
  return joined;
}

}  // namespace

class CombinedLoader::Source final : public detail::BatchSource {
 public:
  Source(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode)
      : loaders_(std::move(loaders)), mode_(mode) {
    if (loaders_.empty()) throw ValueError("[combined_loader] there are no loaders; give one or more.");
    for (const auto& l : loaders_) {
      if (!l) throw ValueError("[combined_loader] one of the loaders is null.");
    }
  }

  std::optional<int64_t> size() const override {
    std::vector<int64_t> sizes;
    for (const auto& l : loaders_) {
      if (!l->has_size()) return std::nullopt;
      sizes.push_back(l->size());
    }
    if (mode_ == CombinedMode::min_size) return std::ranges::min(sizes);
    if (mode_ == CombinedMode::sequential) return std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    return std::ranges::max(sizes);
  }

  std::unique_ptr<detail::BatchSource> share(const DataLoaderOptions& o) const override {
    std::vector<std::shared_ptr<DataLoader>> parts;
    for (const auto& l : loaders_) parts.push_back(l->share_of(o.num_replicas, o.rank, o.pad));
    return std::make_unique<Source>(std::move(parts), mode_);
  }

  LoaderState fresh(int64_t epoch) const override {
    LoaderState place{.epoch = epoch, .samples = count(), .ended = std::vector<int64_t>(loaders_.size(), 0)};
    for (std::size_t i = 0; i < loaders_.size(); ++i) place.parts.push_back(source(i).fresh(epoch));
    return place;
  }

  void check(const LoaderState& place) const override {
    const bool fits =
        place.samples == count() && place.parts.size() == loaders_.size() && place.ended.size() == loaders_.size();
    if (!fits) {
      throw StateError(fmt::format("[combined_loader] the state is of {} loaders, there are {}. Resume with the same.",
                                   place.samples, count()));
    }
    if (place.epoch < 0 || place.batches < 0) detail::refuse_damaged_place(place, size().value_or(-1));
    for (std::size_t i = 0; i < place.parts.size(); ++i) source(i).check(place.parts[i]);
  }

  void put_seeds(LoaderState& place) const override {
    for (std::size_t i = 0; i < place.parts.size(); ++i) source(i).put_seeds(place.parts[i]);
  }

  void take_seeds(const LoaderState& place) override {
    for (std::size_t i = 0; i < std::min(place.parts.size(), loaders_.size()); ++i)
      source(i).take_seeds(place.parts[i]);
  }

  void start(const LoaderState& place) override {
    place_ = place;
    for (std::size_t i = 0; i < loaders_.size(); ++i) {
      impl_of(*loaders_[i]).choose(place.parts[i]);
      // In sequence, later loaders do not load ahead yet; a loader that has ended is not started again.
      if (mode_ != CombinedMode::sequential && !(ended(i) && mode_ == CombinedMode::max_size)) begin(i);
    }
    current_ = 0;
    while (mode_ == CombinedMode::sequential && current_ + 1 < loaders_.size() && ended(current_)) ++current_;
    if (mode_ == CombinedMode::sequential && !ended(current_)) begin(current_);
    note_places();
  }

  std::optional<Batch> next() override {
    std::optional<Batch> batch = mode_ == CombinedMode::sequential ? next_in_sequence() : next_of_all();
    if (!batch) return batch;
    ++place_.batches;
    note_places();
    return batch;
  }

  LoaderState place() const override { return place_; }
  void stop() override {
    for (std::size_t i = 0; i < loaders_.size(); ++i) source(i).stop();
  }

 private:
  int64_t count() const { return static_cast<int64_t>(loaders_.size()); }
  detail::BatchSource& source(std::size_t i) const { return *impl_of(*loaders_[i]).source; }
  bool ended(std::size_t i) const { return place_.ended[i] != 0; }
  void begin(std::size_t i) { impl_of(*loaders_[i]).begin_walk(); }

  std::optional<Batch> pull(std::size_t i) { return impl_of(*loaders_[i]).pull(); }

  /// Records the positions; called only after a whole round, so that no state lies inside one.
  void note_places() {
    place_.parts.clear();
    for (std::size_t i = 0; i < loaders_.size(); ++i) place_.parts.push_back(loaders_[i]->state());
  }

  std::optional<Batch> next_in_sequence() {
    for (;;) {
      if (!ended(current_)) {
        if (std::optional<Batch> batch = pull(current_)) {
          batch->dataloader_idx = static_cast<int>(current_);
          return batch;
        }
        place_.ended[current_] = 1;
      }
      if (current_ + 1 == loaders_.size()) return std::nullopt;
      begin(++current_);
    }
  }

  std::optional<Batch> next_of_all() {
    std::vector<std::optional<Batch>> parts(loaders_.size());
    for (std::size_t i = 0; i < loaders_.size(); ++i) {
      if (mode_ == CombinedMode::max_size && ended(i)) continue;
      parts[i] = pull(i);
      if (parts[i]) continue;
      place_.ended[i] = 1;
      if (mode_ == CombinedMode::min_size || all_ended()) return std::nullopt;
      if (mode_ == CombinedMode::max_size_cycle) parts[i] = first_of_next_cycle(i);
    }
    return join(parts);
  }

  bool all_ended() const {
    return std::all_of(place_.ended.begin(), place_.ended.end(), [](int64_t e) { return e != 0; });
  }

  std::optional<Batch> first_of_next_cycle(std::size_t i) {
    DataLoader::Impl& impl = impl_of(*loaders_[i]);
    // The iteration that ended has set the epoch after its own.
    impl.choose(source(i).fresh(impl.next_place.epoch - 1 + kCycle));
    begin(i);
    std::optional<Batch> batch = pull(i);
    if (!batch) throw ValueError(fmt::format("[combined_loader] loader {} has no batches to restart with.", i));
    return batch;
  }

  std::vector<std::shared_ptr<DataLoader>> loaders_;
  CombinedMode mode_;
  std::size_t current_ = 0;  // loader being read, for sequential
  LoaderState place_;
};

CombinedMode parse_combined_mode(std::string_view text) {
  if (text == "min_size") return CombinedMode::min_size;
  if (text == "max_size_cycle") return CombinedMode::max_size_cycle;
  if (text == "max_size") return CombinedMode::max_size;
  if (text == "sequential") return CombinedMode::sequential;
  throw ValueError(fmt::format(
      "[combined_loader] \"{}\" is not a mode: write min_size, max_size_cycle, max_size or sequential.", text));
}

std::unique_ptr<DataLoader::Impl> CombinedLoader::make(std::vector<std::shared_ptr<DataLoader>> loaders,
                                                       CombinedMode mode) {
  auto impl = std::make_unique<Impl>(DataLoaderOptions{});
  impl->source = std::make_unique<Source>(std::move(loaders), mode);
  return impl;
}

CombinedLoader::CombinedLoader(std::vector<std::shared_ptr<DataLoader>> loaders, CombinedMode mode)
    : DataLoader(make(std::move(loaders), mode)) {}

}  // namespace levin::data
