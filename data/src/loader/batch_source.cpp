#include "batch_source.h"

#include <fmt/format.h>

namespace levin::data::detail {

void JobRunner::start(std::shared_ptr<const LoadJob> job, int64_t first) {
  job_ = std::move(job);
  turn_ = first;
  failed_ = false;
  if (options_.num_workers == 0) return;
  if (!pool_ || pool_->broken()) {
    const int64_t ahead = static_cast<int64_t>(options_.num_workers) * options_.prefetch_factor;
    pool_ = std::make_unique<WorkerPool>(options_.num_workers, ahead, options_.worker_init);
  }
  pool_->start(job_, first);
}

std::optional<Batch> JobRunner::next() {
  if (failed_) throw Error("[dataloader] this iteration ended with an exception; begin another one.");
  if (turn_ >= job_->turns) return std::nullopt;
  const int64_t turn = turn_++;
  failed_ = true;
  std::optional<Batch> batch = pool_ ? pool_->next(options_.timeout) : run_here(turn);
  failed_ = false;
  return batch;
}

std::optional<Batch> JobRunner::run_here(int64_t turn) const {
  try {
    return job_->run(turn);
  } catch (...) {
    rethrow_from(fmt::format("[dataloader] {}: ", place_of_failure(turn)));
  }
}

void JobRunner::stop() {
  if (!options_.persistent_workers) {
    pool_.reset();
  } else if (pool_ && !pool_->broken()) {
    pool_->cancel();
  }
  job_.reset();
}

void refuse_damaged_place(const LoaderState& place, int64_t batches) {
  throw StateError(
      fmt::format("[dataloader] the state names batch {} of epoch {}, but an epoch has {} batches. It is damaged.",
                  place.batches, place.epoch, batches));
}

}  // namespace levin::data::detail
