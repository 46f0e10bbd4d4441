#include <doctest/doctest.h>
#include <levin/core/warning.h>
#include <levin/data/dataloader.h>
#include <levin/kernels/cuda.h>

#include "counted_data.h"
#include "damage.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

/// Batches of 1, 2, 3, ... indices, later epochs from the end.
class Growing final : public BatchSampler {
 public:
  int64_t size() const override { return 4; }
  std::vector<std::vector<int64_t>> batches(int64_t epoch) const override {
    std::vector<std::vector<int64_t>> list{{0}, {1, 2}, {3, 4, 5}, {6, 7, 8, 9}};
    if (epoch % 2 == 1) std::reverse(list.begin(), list.end());
    return list;
  }
};

class Broken final : public BatchSampler {
 public:
  explicit Broken(std::vector<std::vector<int64_t>> list) : list_(std::move(list)) {}
  int64_t size() const override { return 2; }
  std::vector<std::vector<int64_t>> batches(int64_t) const override { return list_; }

 private:
  std::vector<std::vector<int64_t>> list_;
};

}  // namespace

TEST_CASE("a batch sampler decides the batches, for any number of workers and after a resume") {
  const auto make = [](int workers) {
    return DataLoader(Numbers(10), {.batch_sampler = std::make_shared<Growing>(), .num_workers = workers, .seed = 4});
  };
  DataLoader plain = make(0);
  CHECK(plain.size() == 4);
  const Content first = walk(plain), second = walk(plain);
  CHECK(first[2].first == std::vector<int64_t>{3, 4, 5});
  CHECK(second[0].first == std::vector<int64_t>{6, 7, 8, 9});
  CHECK(second[0].second != first[3].second);
  for (const int workers : {1, 3}) {
    DataLoader loader = make(workers);
    CHECK(walk(loader) == first);
    auto it = loader.begin();
    const LoaderState state = loader.state();
    DataLoader resumed = make(0);
    resumed.load_state(state);
    CHECK(walk(resumed) == Content(second.begin() + 1, second.end()));
  }
}

TEST_CASE("PyTorch's batch sampler groups a sampler's indices") {
  const auto sampler = std::make_shared<SequentialSampler>(7);
  const BatchSampler keeping(sampler, 3, false), dropping(sampler, 3, true);
  CHECK(keeping.size() == 3);
  CHECK(keeping.batches(0) == std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}, {6}});
  CHECK(dropping.batches(0) == std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}});
  CHECK_THROWS_AS(BatchSampler(sampler, 0, false), ValueError);
}

TEST_CASE("batch samplers that make no sense are refused") {
  const auto error = [](DataLoaderOptions o) { return message_of([&] { DataLoader(Numbers(5), o).begin(); }); };
  const auto sampler = std::make_shared<Growing>();
  CHECK(error({.batch_size = 2, .batch_sampler = sampler}).find("together with batch_size") != std::string::npos);
  CHECK(error({.shuffle = true, .batch_sampler = sampler}).find("together with") != std::string::npos);
  CHECK(error({.batch_sampler = std::make_shared<Broken>(std::vector<std::vector<int64_t>>{{1}})}) ==
        "[dataloader] the batch sampler gave 1 batches but its size is 2.");
  CHECK(error({.batch_sampler = std::make_shared<Broken>(std::vector<std::vector<int64_t>>{{1}, {}})}) ==
        "[dataloader] batch 1 of the batch sampler is empty; give each one index or more.");
  CHECK(error({.batch_sampler = std::make_shared<Broken>(std::vector<std::vector<int64_t>>{{1}, {5}})}) ==
        "[dataloader] the sampler gave index 5, but the dataset has 5 samples.");
}

TEST_CASE("a random subset is shuffled anew in each epoch") {
  const SubsetRandomSampler sampler({4, 8, 15, 16, 23, 42}, 1);
  std::vector<int64_t> first = sampler.indices(0);
  CHECK(first != sampler.indices(1));
  std::sort(first.begin(), first.end());
  CHECK(first == std::vector<int64_t>{4, 8, 15, 16, 23, 42});
}

TEST_CASE("worker_init runs once in each worker's thread, which knows its number") {
  std::mutex mutex;
  std::condition_variable somebody;
  std::set<int> initialised;
  std::set<std::pair<int, int>> seen;
  const Numbers data(12, [&](int64_t) {
    const auto info = get_worker_info();
    std::unique_lock lock(mutex);
    seen.emplace(info ? info->id : -1, info ? info->num_workers : -1);
    somebody.notify_all();
    somebody.wait_for(lock, std::chrono::seconds(20), [&] { return seen.size() > 1; });  // the first leaves some over
  });
  int calls = 0;
  DataLoader loader(data, {.num_workers = 2, .worker_init = [&](int worker) {
                             const std::lock_guard lock(mutex);
                             ++calls;
                             if (get_worker_info()->id == worker) initialised.insert(worker);
                           }});
  walk(loader);
  walk(loader);
  CHECK(calls == 2);
  CHECK(initialised == std::set<int>{0, 1});
  CHECK(seen == std::set<std::pair<int, int>>{{0, 2}, {1, 2}});
  CHECK_FALSE(get_worker_info().has_value());
}

TEST_CASE("a worker_init that throws comes out of the walk, and the loader can be used again") {
  std::atomic<bool> broken{true};
  DataLoader loader(Numbers(6), {.num_workers = 2, .worker_init = [&](int worker) {
                                   if (worker == 1 && broken) throw IoError("[test] no scratch folder.");
                                   sleep_ms(30);
                                 }});
  CHECK(message_of([&] { walk(loader); }) == "[dataloader] worker 1, worker_init: [test] no scratch folder.");
  broken = false;
  CHECK(walk(loader).size() == 6);
}

TEST_CASE("a walk that failed says so when it is gone on with") {
  for (const int workers : {0, 2}) {
    DataLoader loader(Numbers(6,
                              [](int64_t i) {
                                if (i == 1) throw IoError("[test] damaged.");
                              }),
                      {.num_workers = workers});
    auto it = loader.begin();
    CHECK_THROWS_AS(++it, IoError);
    CHECK(message_of([&] { ++it; }) == "[dataloader] this walk ended with an exception; begin another one.");
  }
}

TEST_CASE("pin_memory without a device does nothing and says so once") {
  if (cuda::is_available()) return;
  std::vector<std::string> said;
  const WarningHandler former = set_warning_handler([&](const std::string& text) { said.push_back(text); });
  for (int i = 0; i < 3; ++i) {
    DataLoader loader(Numbers(4), {.batch_size = 2, .num_workers = i, .pin_memory = true});
    CHECK(indices(walk(loader)) == std::vector<int64_t>{0, 1, 2, 3});
    CHECK_FALSE(loader.options().pin_memory);
    auto it = loader.begin();
    CHECK_FALSE(cuda::is_pinned((*it)[0]));
  }
  warn("and this");
  set_warning_handler(former);
  CHECK(said == std::vector<std::string>{
                    "[dataloader] pin_memory does nothing here: there is no CUDA device to copy to.", "and this"});
}

TEST_CASE("more workers load faster what waits") {
  const auto seconds = [](int workers) {
    DataLoader loader(Numbers(40, [](int64_t) { sleep_ms(3); }), {.num_workers = workers});
    const auto before = std::chrono::steady_clock::now();
    walk(loader);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  };
  CHECK(seconds(4) < 0.7 * seconds(0));
}

TEST_CASE("data/wait_warning_only_when_measured") {
  const auto walked = [](int data_ms, int step_ms) {
    auto loader = std::make_unique<DataLoader>(Numbers(12, [=](int64_t) { sleep_ms(data_ms); }),
                                               DataLoaderOptions{.num_workers = 1});
    CHECK(loader->wait_advice().empty());
    for (const Batch& batch : *loader) {
      static_cast<void>(batch);
      sleep_ms(step_ms);
    }
    return loader;
  };
  const auto slow = walked(20, 0);
  CHECK(slow->times().batches == 12);
  CHECK(slow->times().share() > 0.7);
  CHECK(slow->times().wait <= slow->times().total);
  CHECK(slow->times().total >= 0.24);
  CHECK(slow->wait_advice().find("went by waiting for data, with num_workers = 1. Raise it") != std::string::npos);
  // One worker is enough here: no advice for the sake of a number.
  const auto fast = walked(0, 20);
  CHECK(fast->times().share() < 0.5);
  CHECK(fast->wait_advice(0.5).empty());
  // The total stands still after the walk.
  const double total = fast->times().total;
  sleep_ms(5);
  CHECK(fast->times().total == total);
}

TEST_CASE("a state goes through plain values and back") {
  DataLoader loader(Numbers(20), {.batch_size = 3, .shuffle = true, .seed = 0xfedcba9876543210});
  auto it = loader.begin();
  ++it;
  const LoaderState state = loader.state();
  CHECK(LoaderState::from_map(state.to_map()) == state);
  CHECK(state.at_epoch(5) == LoaderState{.epoch = 5, .seed = state.seed, .samples = 20, .batch_size = 3});
  CHECK_THROWS_AS(LoaderState::from_map(StateMap()), StateError);
}

TEST_CASE("a shuffled validation walk goes on in its middle, with another number of workers") {
  const auto make = [](int workers, std::uint64_t seed) {
    return DataLoader(Numbers(17), {.batch_size = 2, .shuffle = true, .num_workers = workers, .seed = seed});
  };
  DataLoader val = make(2, 3);
  walk(val);
  const Content whole = [&] {
    DataLoader other = make(0, 3);
    other.set_epoch(1);
    return walk(other);
  }();
  auto it = val.begin();
  for (int i = 0; i < 3; ++i) ++it;
  DataLoader resumed = make(5, 99);
  resumed.load_state(LoaderState::from_map(val.state().to_map()));
  CHECK(walk(resumed) == Content(whole.begin() + 4, whole.end()));
}
