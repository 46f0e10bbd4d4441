#include "thread_pool.h"

#include <levin/core/error.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <memory>
#include <mutex>

namespace levin::detail {

namespace {

/// How a worker and the thread that claimed it tell each other what they do. Only the worker changes `idle` to `asleep`
/// and `posted` to `running`; the caller changes `posted` back to `idle` if the work is done before the worker begins.
enum WorkerState : std::uint32_t {
  idle,     // the worker spins
  asleep,   // the worker waits for a notification
  posted,   // the fields below hold a task
  running,  // the worker runs the task
  awaited,  // it runs the task, and the caller waits for a notification
  stopped,  // the thread ends
};

struct alignas(64) Worker {
  std::atomic<std::uint32_t> state{idle};
  Crew::Task task = nullptr;
  void* loop = nullptr;
  int member = 0;
  std::uint64_t float_control = 0;
  pthread_t thread{};
};

/// Never destroyed: loops may run in destructors of static objects.
struct Pool {
  std::atomic<std::uint64_t> unclaimed[kMostWorkers / 64]{};  // a bit for each worker that no caller holds
  std::atomic<int> started{0};
  std::atomic<unsigned> forks{0};
  std::atomic<int> most{static_cast<int>(kMostWorkers)};  // fewer after the system refused a thread
  std::mutex starting;  // protects `closed` and the increase of `started`
  bool closed = false;
  Worker workers[kMostWorkers];
};
constinit Pool pool;

template <class Call>
void for_each_worker(const WorkerSet& set, const Call& call) {
  for (std::size_t w = 0; w < set.size(); ++w) {
    for (std::uint64_t rest = set[w]; rest != 0; rest &= rest - 1) {
      call(pool.workers[64 * w + static_cast<std::size_t>(std::countr_zero(rest))]);
    }
  }
}

/// Longer than most work between two loops of a training step.
constexpr std::chrono::microseconds kSpin{50};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// The rounding mode and the treatment of denormal numbers of the calling thread, which its workers take over.
std::uint64_t float_control() {
#if defined(__x86_64__)
  constexpr unsigned flags = 0x3f;  // exceptions that have occurred
  return __builtin_ia32_stmxcsr() & ~flags;
#elif defined(__aarch64__)
  std::uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  return control;
#else
  return 0;
#endif
}

void set_float_control([[maybe_unused]] std::uint64_t control) {
#if defined(__x86_64__)
  if (float_control() != control) __builtin_ia32_ldmxcsr(static_cast<unsigned>(control));
#elif defined(__aarch64__)
  if (float_control() != control) asm volatile("msr fpcr, %0" : : "r"(control));
#endif
}

/// Spins until ready(), for at most a while; returns whether it is.
template <class Ready>
bool spin(const Ready& ready) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (Clock::now() < end);
  return false;
}

/// Returns when a task is posted, or the worker is stopped.
void await_task(Worker& worker) {
  const auto waits = [&] { return worker.state.load(std::memory_order_acquire) <= asleep; };
  while (waits()) {
    if (spin([&] { return !waits(); })) return;
    std::uint32_t expected = idle;
    worker.state.compare_exchange_strong(expected, asleep, std::memory_order_acq_rel);
    worker.state.wait(asleep, std::memory_order_acquire);
  }
}

/// Workers may use the cores of the process's first thread, also if the thread that starts them is bound to fewer.
void use_cores_of_process() {
  cpu_set_t process, own;
  if (sched_getaffinity(getpid(), sizeof process, &process) == 0 && sched_getaffinity(0, sizeof own, &own) == 0 &&
      !CPU_EQUAL(&process, &own)) {
    sched_setaffinity(0, sizeof process, &process);
  }
}

void* work(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  use_cores_of_process();
  for (;;) {
    await_task(worker);
    std::uint32_t expected = posted;
    if (worker.state.compare_exchange_strong(expected, running, std::memory_order_acq_rel)) {
      set_float_control(worker.float_control);
      worker.task(worker.loop, worker.member);
      if (worker.state.exchange(idle) == awaited) worker.state.notify_one();
    } else if (expected == stopped) {
      return nullptr;
    }
  }
}

void post(Worker& worker, WorkerState state) {
  if (worker.state.exchange(state) == asleep) worker.state.notify_one();
}

/// The child of a fork has none of the workers; it starts its own when it needs them.
void forget_workers() {
  pool.forks.fetch_add(1, std::memory_order_relaxed);
  pool.started.store(0, std::memory_order_relaxed);
  pool.most.store(static_cast<int>(kMostWorkers), std::memory_order_relaxed);
  for (auto& word : pool.unclaimed) word.store(0, std::memory_order_relaxed);
  pool.starting.unlock();
}

/// Keeps the pool usable in children of forks, and ends the idle workers at the end of the process or before the shared
/// object that contains this code is unloaded.
struct Lifetime {
  Lifetime() { pthread_atfork([] { pool.starting.lock(); }, [] { pool.starting.unlock(); }, forget_workers); }
  ~Lifetime() {
    {
      const std::lock_guard lock(pool.starting);
      pool.closed = true;
    }
    WorkerSet taken{};
    for (std::size_t w = 0; w < taken.size(); ++w) taken[w] = pool.unclaimed[w].exchange(0, std::memory_order_acquire);
    for_each_worker(taken, [](Worker& worker) { post(worker, stopped); });
    for_each_worker(taken, [](Worker& worker) { pthread_join(worker.thread, nullptr); });
  }
} const lifetime;

/// Starts a thread that receives no signal but those of faults and of profilers, so that handlers run where they did.
bool start_thread(Worker& worker) {
  sigset_t blocked, before;
  sigfillset(&blocked);
  for (const int kept : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) sigdelset(&blocked, kept);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  const bool started = pthread_create(&worker.thread, nullptr, work, &worker) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) pthread_setname_np(worker.thread, "levin");
  return started;
}

/// Starts `more` workers, unless there are `most` then.
void start_workers(int more, int most) {
  const std::lock_guard lock(pool.starting);
  if (pool.closed) return;
  const int started = pool.started.load(std::memory_order_relaxed);
  for (int w = started; w < std::min(started + more, most); ++w) {
    Worker& worker = pool.workers[w];
    worker.state.store(idle, std::memory_order_relaxed);
    if (!start_thread(worker)) return pool.most.store(w, std::memory_order_relaxed);
    pool.started.store(w + 1, std::memory_order_release);
    pool.unclaimed[w / 64].fetch_or(std::uint64_t{1} << (w % 64), std::memory_order_release);
  }
}

}  // namespace

Crew::Crew(Task task, void* loop, int wanted, int usable)
    : task_(task), loop_(loop), wanted_(wanted), usable_(std::min(usable, pool.most.load(std::memory_order_relaxed))) {
  forks_ = pool.forks.load(std::memory_order_relaxed);
  recruit();
  if (short_handed() && pool.started.load(std::memory_order_relaxed) < usable_) [[unlikely]] {
    start_workers(wanted_ - members_, usable_);
    recruit();
  }
}

void Crew::recruit() {
  for (int first = 0; first < usable_ && short_handed(); first += 64) {
    const std::uint64_t usable = ~std::uint64_t{0} >> (64 - std::min(usable_ - first, 64));
    const auto word = static_cast<std::size_t>(first) / 64;
    std::atomic<std::uint64_t>& unclaimed = pool.unclaimed[word];
    for (std::uint64_t found; short_handed() && (found = unclaimed.load(std::memory_order_relaxed) & usable) != 0;) {
      const std::uint64_t bit = found & (~found + 1);
      if ((unclaimed.fetch_and(~bit, std::memory_order_acquire) & bit) == 0) continue;  // another caller was faster
      claimed_[word] |= bit;
      Worker& worker = pool.workers[first + std::countr_zero(bit)];
      worker.task = task_;
      worker.loop = loop_;
      worker.member = ++members_;
      worker.float_control = float_control();
      post(worker, posted);
    }
  }
}

void Crew::finish() {
  if (members_ == 0) return;
  const bool forked = forks_ != pool.forks.load(std::memory_order_relaxed);
  bool lost = false;
  for_each_worker(claimed_, [](Worker& worker) {
    std::uint32_t expected = posted;
    worker.state.compare_exchange_strong(expected, idle, std::memory_order_acq_rel);
  });
  for_each_worker(claimed_, [&](Worker& worker) {
    const auto done = [&] { return worker.state.load(std::memory_order_acquire) <= asleep; };
    if (done()) return;
    if (forked) {
      lost = true;
      return;
    }
    if (spin(done)) return;
    std::uint32_t expected = running;
    worker.state.compare_exchange_strong(expected, awaited, std::memory_order_acq_rel);
    while (!done()) worker.state.wait(awaited, std::memory_order_acquire);
  });
  if (lost)
    throw StateError("[parallel_for] this process was forked inside a loop, whose other threads are missing here. "
                     "Fork outside of parallel_for.");
  if (forked) return;
  for (std::size_t w = 0; w < claimed_.size(); ++w)
    if (claimed_[w] != 0) pool.unclaimed[w].fetch_or(claimed_[w], std::memory_order_release);
}

}  // namespace levin::detail
