// Distributes a grid's clusters over host threads.

#include "team.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

namespace levin::emulator {

namespace {

constexpr std::uint64_t kWorthSharing = 1024;  // emulated threads below which one host thread runs the grid

/// A grid that is running.
struct Work {
  const Launch& launch;
  std::uint64_t seed, clusters, stride, first;
  dim3 grid_in_clusters;
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::string failure;  ///< failure of the lowest-numbered failed cluster

  explicit Work(const Launch& l, std::uint64_t s) : launch(l), seed(s), stride(1), first(0) {
    grid_in_clusters = {l.grid.x / l.cluster.x, l.grid.y / l.cluster.y, l.grid.z / l.cluster.z};
    clusters = std::uint64_t{grid_in_clusters.x} * grid_in_clusters.y * grid_in_clusters.z;
    if (seed == 0 || clusters < 2) return;
    first = seed * 7919 % clusters;  // each seed orders blocks differently; a coprime stride visits all
    stride = 1 + seed * 104729 % clusters;
    while (std::gcd(stride, clusters) != 1) ++stride;
  }

  void run() {
    static thread_local Team team;
    team.begin_grid();
    for (std::uint64_t i; (i = next.fetch_add(1)) < clusters;) {
      const std::uint64_t c = (first + i * (stride % clusters)) % clusters;
      const auto x = static_cast<unsigned>(c % grid_in_clusters.x);
      const auto y = static_cast<unsigned>(c / grid_in_clusters.x % grid_in_clusters.y);
      const auto z = static_cast<unsigned>(c / grid_in_clusters.x / grid_in_clusters.y);
      const std::string text =
          team.run(launch, {x * launch.cluster.x, y * launch.cluster.y, z * launch.cluster.z}, seed);
      if (text.empty()) continue;
      const std::lock_guard lock(mutex);
      if (failure.empty()) failure = text;
      next.store(clusters);
    }
    team.end_grid();
  }
};

/// A pool of host threads that wait for grids.
class Workers {
 public:
  explicit Workers(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { serve(); });
  }
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  int count() const { return static_cast<int>(threads_.size()); }

  void share(Work& work) {
    {
      const std::lock_guard lock(mutex_);
      work_ = &work;
      ++round_;
    }
    wake_.notify_all();
    work.run();
    std::unique_lock lock(mutex_);
    work_ = nullptr;  // workers that have not started need not
    done_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void serve() {
    std::uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return stop_ || (work_ && round_ != seen); });
      if (stop_) return;
      seen = round_;
      Work& work = *work_;
      ++busy_;
      lock.unlock();
      work.run();
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  Work* work_ = nullptr;
  std::uint64_t round_ = 0;
  int busy_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

int wanted_workers() {
  const int wanted = config().workers;
  if (kThreadSanitizerOn) return std::min(wanted > 0 ? wanted : 2, 4);  // it supports 8128 threads, including fibers
  return wanted > 0 ? wanted : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace

std::string run_grid(const Launch& launch) {
  Work work(launch, config().seed);
  const std::uint64_t threads = work.clusters * launch.cluster.x * launch.cluster.y * launch.cluster.z *
                                launch.block.x * launch.block.y * launch.block.z;
  const int wanted = wanted_workers();
  if (wanted == 1 || work.clusters == 1 || threads < kWorthSharing) {
    work.run();
    return work.failure;
  }
  static std::mutex one_grid;  // grids run one at a time
  static std::unique_ptr<Workers> workers;
  const std::lock_guard lock(one_grid);
  if (!workers || workers->count() != wanted - 1) workers = std::make_unique<Workers>(wanted - 1);
  workers->share(work);
  return work.failure;
}

}  // namespace levin::emulator
