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

#if !defined(LEVIN_SERIAL)
#include <omp.h>
#else
#include <sched.h>
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

int default_threads() {
#if defined(LEVIN_SERIAL)
  cpu_set_t set;
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
#else
  const int cores = omp_get_max_threads();
  if (std::getenv("OMP_NUM_THREADS")) return cores;
#endif
  return std::min(cores, quota_cores());
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

  void run(int thread) {
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
      }
    }
    t_in_parallel = false;
  }
};

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
  const int used = std::min(threads, kShares);
  for (int s = 0; s < used; ++s) {
    shares[s].next.store(chunks * s / used, std::memory_order_relaxed);
    shares[s].end = chunks * (s + 1) / used;
  }
  Job job{begin, end, grain, fn, body, used, shares, {}, {}};
  // The team always has all threads: libgomp ends those that a smaller team does not need, and must start them again.
#pragma omp parallel num_threads(threads)
  job.run(omp_get_thread_num());
  if (job.error) std::rethrow_exception(job.error);
#endif
}

}  // namespace detail
}  // namespace levin
