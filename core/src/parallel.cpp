#include <levin/core/error.h>
#include <levin/core/parallel.h>
#include <levin/core/side_by_side.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>

#include <sched.h>
#include <unistd.h>

#if defined(LEVIN_OPENMP)
#include <omp.h>
#elif !defined(LEVIN_SERIAL)
#include "thread_pool.h"
#endif

namespace levin {

namespace {

thread_local bool t_in_parallel = false;
thread_local int t_limit = std::numeric_limits<int>::max();

/// Returns the number of cores that a container's quota allows, rounded up (cgroup v2's cpu.max: "200000 100000" or
/// "max 100000").
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::numeric_limits<int>::max();
  return static_cast<int>(std::min(std::ceil(quota / period), 1e6));
}

/// Returns the number of cores to which the process's first thread is bound.
int bound_cores() {
  cpu_set_t set;
  if (sched_getaffinity(getpid(), sizeof set, &set) == 0) return CPU_COUNT(&set);
  return static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));  // more than cpu_set_t has room for
}

/// Returns the first number of OMP_NUM_THREADS, which may be a list ("4,2"); 0 if it is no number of threads.
int wanted_threads() {
  const char* text = std::getenv("OMP_NUM_THREADS");
  const long wanted = text ? std::strtol(text, nullptr, 10) : 0;
  return static_cast<int>(std::clamp(wanted, 0L, 1'000'000L));
}

int default_threads() {
  if (const int wanted = wanted_threads(); wanted > 0) return wanted;
  return std::min(bound_cores(), quota_cores());
}

std::atomic<int>& thread_setting() {
  static std::atomic<int> threads{std::max(1, default_threads())};
  return threads;
}

}  // namespace

int num_threads() { return std::min(t_limit, thread_setting().load(std::memory_order_relaxed)); }

void set_num_threads(int threads) {
  if (threads < 1) throw ValueError(fmt::format("[set_num_threads] {} threads are too few; use 1 or more.", threads));
  thread_setting().store(threads, std::memory_order_relaxed);
}

bool in_parallel_region() { return t_in_parallel; }

void limit_thread(int threads) {
  if (threads < 1) throw ValueError(fmt::format("[limit_thread] {} threads are too few; use 1 or more.", threads));
  t_limit = threads;
}

void set_thread_serial(bool serial) { t_limit = serial ? 1 : std::numeric_limits<int>::max(); }

namespace detail {

namespace {

void serial_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFn fn, const void* body) {
  for (int64_t b = begin; b < end; b += std::min(grain, end - b)) fn(body, b, std::min(b + grain, end));
}

#if !defined(LEVIN_SERIAL)

/// The chunks that one thread begins with; other threads steal from them when their own are used up.
struct alignas(64) Share {
  std::atomic<int64_t> next;
  int64_t end;
};
constexpr int kShares = 64;

/// The state of one parallel loop, on the stack of the calling thread.
struct Job {
  int64_t begin, end, grain;
  ChunkFn fn;
  const void* body;
  int shares;
  Share* share;
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  /// Computes chunks until none is left. Calls between() after each chunk of the thread's own share.
  template <class Between>
  void run(int thread, const Between& between) {
    t_in_parallel = true;
    for (int k = 0; k < shares; ++k) {
      Share& s = share[(thread + k) % shares];
      for (int64_t i; (i = s.next.fetch_add(1, std::memory_order_relaxed)) < s.end;) {
        if (failed.load(std::memory_order_relaxed)) break;
        try {
          fn(body, begin + i * grain, std::min(begin + (i + 1) * grain, end));
        } catch (...) {
          if (!failed.exchange(true)) error = std::current_exception();
        }
        between();
      }
    }
    t_in_parallel = false;
  }
};

/// Lets up to `threads` threads run the job, of which the calling thread is number 0.
void run_team(Job& job, int threads, [[maybe_unused]] int64_t chunks) {
#if defined(LEVIN_OPENMP)
  // The team always has all threads: libgomp ends those that a smaller team does not need, and must start them again.
#pragma omp parallel num_threads(threads)
  job.run(omp_get_thread_num(), [] {});
#else
  const int wanted = static_cast<int>(std::min<int64_t>(threads, chunks)) - 1;
  const int usable = thread_setting().load(std::memory_order_relaxed) - 1;
  Crew crew([](void* loop, int member) { static_cast<Job*>(loop)->run(member, [] {}); }, &job, wanted, usable);
  job.run(0, [&] {
    if (crew.short_handed()) crew.recruit();
  });
  crew.finish();
#endif
}

#endif

}  // namespace

void parallel_chunks(int64_t begin, int64_t end, int64_t grain, ChunkFn fn, const void* body) {
  grain = std::max<int64_t>(grain, 1);
#if defined(LEVIN_SERIAL)
  const bool outer = !t_in_parallel;
  t_in_parallel = true;
  try {
    serial_chunks(begin, end, grain, fn, body);
  } catch (...) {
    if (outer) t_in_parallel = false;
    throw;
  }
  if (outer) t_in_parallel = false;
#else
  const int threads = num_threads();
  if (threads == 1 || t_in_parallel) return serial_chunks(begin, end, grain, fn, body);

  // Neighbouring chunks begin on the same thread, which keeps its caches warm from one operation to the next.
  static thread_local Share shares[kShares];
  const int64_t chunks = (end - begin - 1) / grain + 1;
  const int used = static_cast<int>(std::min<int64_t>({threads, kShares, chunks}));
  for (int s = 0; s < used; ++s) {
    shares[s].next.store(chunks * s / used, std::memory_order_relaxed);
    shares[s].end = chunks * (s + 1) / used;
  }
  Job job{begin, end, grain, fn, body, used, shares, {}, {}};
  run_team(job, threads, chunks);
  if (job.error) std::rethrow_exception(job.error);
#endif
}

}  // namespace detail
}  // namespace levin
