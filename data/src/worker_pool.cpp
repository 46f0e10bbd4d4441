#include "worker_pool.h"

#include <levin/core/parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace levin::data::detail {

namespace {

/// A batch that waits to be taken.
struct Slot {
  bool ready = false;
  Batch batch;
  std::exception_ptr error;
};

}  // namespace

/// All under `mutex`.
struct WorkerPool::State {
  State(int workers, int64_t ahead)
      : slots(static_cast<std::size_t>(ahead)), at_batch(static_cast<std::size_t>(workers), -1) {}

  std::mutex mutex;
  std::condition_variable work_or_stop;  ///< for the workers
  std::condition_variable progress;      ///< for the consumer
  std::shared_ptr<const LoadJob> job;
  std::uint64_t generation = 0;          ///< tells a batch of a dropped job from one of the present job
  int64_t next = 0;                      ///< batch that the next free worker loads
  int64_t taken = 0;                     ///< batch that the consumer takes next
  bool stop = false;
  std::vector<Slot> slots;               ///< batch b waits in slot b % size
  std::vector<int64_t> at_batch;         ///< of each worker, -1 when idle

  Slot& slot(int64_t batch) { return slots[static_cast<std::size_t>(batch) % slots.size()]; }
  bool has_work() const { return job && next < job->batches && next < taken + static_cast<int64_t>(slots.size()); }
  bool all_idle() const { return std::all_of(at_batch.begin(), at_batch.end(), [](int64_t b) { return b < 0; }); }
  void drop_job() {
    job.reset();
    ++generation;
    for (Slot& s : slots) s = {};
  }
};

WorkerPool::WorkerPool(int workers, int64_t ahead) : state_(std::make_shared<State>(workers, ahead)) {
  for (int w = 0; w < workers; ++w) {
    threads_.emplace_back([state = state_, w] { work(state, w); });
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->drop_job();
  }
  state_->work_or_stop.notify_all();
  for (std::thread& t : threads_) {
    if (abandoned_) {
      t.detach();
    } else {
      t.join();
    }
  }
}

void WorkerPool::work(const std::shared_ptr<State>& state, int worker) {
  set_thread_serial(true);
  State& s = *state;
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.work_or_stop.wait(lock, [&] { return s.stop || s.has_work(); });
    if (s.stop) return;
    const int64_t batch = s.next++;
    const std::uint64_t generation = s.generation;
    std::shared_ptr<const LoadJob> job = s.job;
    s.at_batch[static_cast<std::size_t>(worker)] = batch;
    lock.unlock();

    Slot result{true, {}, {}};
    try {
      set_default_dtype(job->default_dtype);
      result.batch = job->load(batch);
    } catch (...) {
      try {
        rethrow_from(fmt::format("[dataloader] worker {}, {}: ", worker, place_of_failure(batch)));
      } catch (...) {
        result.error = std::current_exception();
      }
    }
    job.reset();  // the last thread out may free the dataset: not under the lock

    lock.lock();
    s.at_batch[static_cast<std::size_t>(worker)] = -1;
    if (generation == s.generation) s.slot(batch) = std::move(result);
    s.progress.notify_all();
  }
}

void WorkerPool::start(std::shared_ptr<const LoadJob> job, int64_t first) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->drop_job();
    state_->job = std::move(job);
    state_->next = state_->taken = first;
  }
  state_->work_or_stop.notify_all();
}

void WorkerPool::cancel() {
  std::unique_lock lock(state_->mutex);
  state_->drop_job();
  state_->progress.wait(lock, [&] { return state_->all_idle(); });
}

Batch WorkerPool::next(double timeout) {
  State& s = *state_;
  Slot slot;
  {
    std::unique_lock lock(s.mutex);
    const int64_t batch = s.taken;
    const auto ready = [&] { return s.slot(batch).ready; };
    if (timeout > 0) {
      if (!s.progress.wait_for(lock, std::chrono::duration<double>(timeout), ready)) {
        abandoned_ = true;
        const auto holder = std::find(s.at_batch.begin(), s.at_batch.end(), batch);
        const std::string who = holder == s.at_batch.end() ? std::string("every worker is")
                                                           : fmt::format("worker {} is", holder - s.at_batch.begin());
        throw Error(
            fmt::format("[dataloader] no batch came within {} s: {} still at batch {} (from index {}). Look at what "
                        "the dataset waits for, or raise timeout.",
                        timeout, who, batch, s.job->indices_of(batch)[0]));
      }
    } else {
      s.progress.wait(lock, ready);
    }
    slot = std::exchange(s.slot(batch), {});
    ++s.taken;
  }
  s.work_or_stop.notify_one();
  if (slot.error) {
    cancel();
    std::rethrow_exception(slot.error);
  }
  return std::move(slot.batch);
}

}  // namespace levin::data::detail
