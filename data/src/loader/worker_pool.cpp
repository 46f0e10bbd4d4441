#include "worker_pool.h"

#include <levin/core/parallel.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace levin::data::detail {

namespace {

/// The result of a turn that the consumer has not taken yet.
struct Slot {
  bool ready = false;
  std::optional<Batch> batch;
  std::exception_ptr error;
};

thread_local std::optional<WorkerInfo> this_worker;

/// Returns the exception being handled with the worker's number in its text.
std::exception_ptr with_worker(int worker, const std::string& place) {
  try {
    rethrow_from(fmt::format("[dataloader] worker {}, {}: ", worker, place));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

/// Shared by the pool and its threads; `mutex` protects all members.
struct WorkerPool::State {
  State(int workers, int64_t ahead, std::function<void(int)> init_)
      : init(std::move(init_)),
        slots(static_cast<std::size_t>(ahead)),
        at_turn(static_cast<std::size_t>(workers), -1) {}

  std::mutex mutex;
  std::condition_variable work_or_stop;  ///< wakes the workers
  std::condition_variable progress;      ///< wakes the consumer
  const std::function<void(int)> init;
  std::exception_ptr init_error;
  std::shared_ptr<const LoadJob> job;
  std::uint64_t generation = 0;  ///< distinguishes turns of the present job from those of dropped jobs
  int64_t next = 0;              ///< turn that the next free worker loads
  int64_t taken = 0;             ///< turn that the consumer takes next
  bool stop = false;
  std::vector<Slot> slots;       ///< turn t waits in slot t % size
  std::vector<int64_t> at_turn;  ///< turn of each worker; -1 if idle

  Slot& slot(int64_t turn) { return slots[static_cast<std::size_t>(turn) % slots.size()]; }
  bool has_work() const { return job && next < job->turns && next < taken + static_cast<int64_t>(slots.size()); }
  bool all_idle() const {
    return std::all_of(at_turn.begin(), at_turn.end(), [](int64_t t) { return t < 0; });
  }
  void drop_job() {
    job.reset();
    ++generation;
    for (Slot& s : slots) s = {};
  }
};

WorkerPool::WorkerPool(int workers, int64_t ahead, std::function<void(int)> init)
    : state_(std::make_shared<State>(workers, ahead, std::move(init))) {
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

bool WorkerPool::initialise(State& s, int worker) {
  this_worker = WorkerInfo{worker, static_cast<int>(s.at_turn.size())};
  set_thread_serial(true);
  if (!s.init) return true;
  try {
    s.init(worker);
    return true;
  } catch (...) {
    const std::lock_guard lock(s.mutex);
    s.init_error = with_worker(worker, "worker_init");
  }
  s.progress.notify_all();
  return false;
}

void WorkerPool::work(const std::shared_ptr<State>& state, int worker) {
  State& s = *state;
  if (!initialise(s, worker)) return;
  std::unique_lock lock(s.mutex);
  for (;;) {
    s.work_or_stop.wait(lock, [&] { return s.stop || s.has_work(); });
    if (s.stop) return;
    const int64_t turn = s.next++;
    const std::uint64_t generation = s.generation;
    std::shared_ptr<const LoadJob> job = s.job;
    s.at_turn[static_cast<std::size_t>(worker)] = turn;
    lock.unlock();

    Slot result{true, {}, {}};
    try {
      set_default_dtype(job->default_dtype);
      result.batch = job->run(turn);
    } catch (...) {
      result.error = with_worker(worker, place_of_failure(turn));
    }
    job.reset();  // outside of the lock, since this may free the dataset

    lock.lock();
    s.at_turn[static_cast<std::size_t>(worker)] = -1;
    if (generation == s.generation) s.slot(turn) = std::move(result);
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

void WorkerPool::give_up(double timeout) {
  const State& s = *state_;
  abandoned_ = broken_ = true;
  const auto holder = std::find(s.at_turn.begin(), s.at_turn.end(), s.taken);
  const std::string who = holder == s.at_turn.end() ? std::string("every worker is")
                                                    : fmt::format("worker {} is", holder - s.at_turn.begin());
  throw Error(fmt::format(
      "[dataloader] no batch came within {} s: {} still at {}. Look at what the dataset waits for, or raise "
      "timeout.",
      timeout, who, s.job->describe(s.taken)));
}

std::optional<Batch> WorkerPool::next(double timeout) {
  State& s = *state_;
  Slot slot;
  {
    std::unique_lock lock(s.mutex);
    const auto ready = [&] { return s.init_error || s.slot(s.taken).ready; };
    if (timeout <= 0) {
      s.progress.wait(lock, ready);
    } else if (!s.progress.wait_for(lock, std::chrono::duration<double>(timeout), ready)) {
      give_up(timeout);
    }
    if (s.init_error) {
      broken_ = true;
      std::rethrow_exception(s.init_error);
    }
    slot = std::exchange(s.slot(s.taken), {});
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

std::optional<levin::data::WorkerInfo> levin::data::get_worker_info() { return detail::this_worker; }
