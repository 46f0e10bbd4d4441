#include <doctest/doctest.h>
#include <levin/core/error.h>
#include <levin/core/parallel.h>
#include <levin/core/side_by_side.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace levin;

namespace {

struct Threads {
  explicit Threads(int n) : before(num_threads()) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int before;
};

using Chunks = std::vector<std::pair<int64_t, int64_t>>;

Chunks chunks_of(int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  Chunks list;
  parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    const std::lock_guard lock(mutex);
    list.emplace_back(b, e);
  });
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("chunks depend only on range and grain") {
  for (const int64_t begin : {int64_t{0}, int64_t{5}}) {
    for (const int64_t size : {0, 1, 7, 8, 9, 63, 64, 65, 1000}) {
      for (const int64_t grain : {1, 8, 64, 5000}) {
        Chunks expected;
        for (int64_t b = begin; b < begin + size; b += grain)
          expected.emplace_back(b, std::min(b + grain, begin + size));
        for (const int threads : {1, 2, 3, 7, 70}) {
          const Threads scope(threads);
          REQUIRE(chunks_of(begin, begin + size, grain) == expected);
        }
      }
    }
  }
}

TEST_CASE("the first exception is rethrown with its type, and parallel_for stays usable") {
  for (const int threads : {1, 2, 7}) {
    const Threads scope(threads);
    const auto body = [](int64_t b, int64_t) {
      if (b == 40) throw ValueError("[test] chunk 40");
    };
    CHECK_THROWS_WITH_AS(parallel_for(0, 100, 10, body), "[test] chunk 40", ValueError);
    CHECK_FALSE(in_parallel_region());
    std::atomic<int64_t> sum{0};
    parallel_for(0, 100, 10, [&](int64_t b, int64_t e) { sum += e - b; });
    CHECK(sum == 100);
  }
}

TEST_CASE("nested calls and serial threads stay on one thread") {
  const Threads scope(3);
  std::atomic<bool> moved{false}, outside{false};
  parallel_for(0, 8, 1, [&](int64_t, int64_t) {
    const auto me = std::this_thread::get_id();
    if (!in_parallel_region()) outside = true;
    parallel_for(0, 8, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != me) moved = true;
    });
  });
  CHECK_FALSE(moved);
  CHECK_FALSE(outside);
  std::thread([&] {
    set_thread_serial(true);
    const auto me = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != me) moved = true;
    });
  }).join();
  CHECK_FALSE(moved);
}

TEST_CASE("a thread with a limit keeps to it, others use all threads") {
  const Threads scope(3);
  std::mutex mutex;
  const auto threads_of = [&] {
    std::vector<std::thread::id> ids;
    parallel_for(0, 300, 1, [&](int64_t, int64_t) {
      const std::lock_guard lock(mutex);
      ids.push_back(std::this_thread::get_id());
    });
    std::sort(ids.begin(), ids.end());
    return std::unique(ids.begin(), ids.end()) - ids.begin();
  };
  std::thread([&] {
    limit_thread(2);
    CHECK(num_threads() == 2);
    CHECK(threads_of() <= 2);
    limit_thread(9);
    CHECK(num_threads() == 3);
  }).join();
  CHECK(num_threads() == 3);
  CHECK_THROWS_WITH_AS(limit_thread(0), "[limit_thread] 0 threads are too few; use 1 or more.", ValueError);
}

TEST_CASE("several threads may call at once") {
  const Threads scope(2);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 50; ++i) parallel_for(0, 100, 7, [&](int64_t b, int64_t e) { sum += e - b; });
    });
  }
  for (auto& c : callers) c.join();
  CHECK(sum == 4 * 50 * 100);
}

TEST_CASE("thread counts below one are refused") {
  CHECK(num_threads() >= 1);
  CHECK_THROWS_WITH_AS(set_num_threads(0), "[set_num_threads] 0 threads are too few; use 1 or more.", ValueError);
}
