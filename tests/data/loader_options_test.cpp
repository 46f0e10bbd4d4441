#include <doctest/doctest.h>
#include <levin/core/warning.h>
#include <levin/data/dataloader.h>
#include <levin/kernels/cuda.h>

#include "counted_data.h"
#include "damage.h"
#include "data/src/loader/loader_impl.h"
#include "support/comparison.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

/// Batches of 1, 2, 3, ... indices; later epochs start from the end.
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

/// A clock that only a test advances. It counts its reads: an iteration reads it once at its start, and before and
/// after each batch that it waits for.
class TestClock {
 public:
  double read() {
    const std::lock_guard lock(mutex_);
    ++reads_;
    moved_.notify_all();
    return now_;
  }
  void advance(double seconds) {
    const std::lock_guard lock(mutex_);
    now_ += seconds;
  }
  /// Blocks until the loader waits for sample i.
  void wait_for_pull_of(int64_t i) {
    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return reads_ >= 2 * (i + 1); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  double now_ = 0;
  int64_t reads_ = 0;
};

/// A loader that uses that clock.
struct ClockedLoader : DataLoader {
  ClockedLoader(const Numbers& data, int workers, TestClock& clock)
      : DataLoader(data, DataLoaderOptions{.num_workers = workers}) {
    impl_->clock = [&clock] { return clock.read(); };
  }
};

}  // namespace

TEST_CASE("a batch sampler defines the batches, for any number of workers and after a resume") {
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

TEST_CASE("invalid batch samplers are refused") {
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

TEST_CASE("worker_init runs once in each worker's thread with the worker's number") {
  std::mutex mutex;
  std::condition_variable somebody;
  std::set<int> initialised;
  std::set<std::pair<int, int>> seen;
  const Numbers data(12, [&](int64_t) {
    const auto info = get_worker_info();
    std::unique_lock lock(mutex);
    seen.emplace(info ? info->id : -1, info ? info->num_workers : -1);
    somebody.notify_all();
    somebody.wait_for(lock, std::chrono::seconds(20), [&] { return seen.size() > 1; });  // the first must not load all
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

TEST_CASE("an exception in worker_init is rethrown by the iteration, and the loader stays usable") {
  std::atomic<bool> broken{true};
  const Numbers data(6, [&](int64_t) { broken.wait(true); });  // the other worker must not load them all first
  DataLoader loader(data, {.num_workers = 2, .worker_init = [&](int worker) {
                             if (worker == 1 && broken) throw IoError("[test] no scratch folder.");
                           }});
  CHECK(message_of([&] { walk(loader); }) == "[dataloader] worker 1, worker_init: [test] no scratch folder.");
  broken = false;
  broken.notify_all();
  CHECK(walk(loader).size() == 6);
}

TEST_CASE("continuing a failed iteration is an error") {
  for (const int workers : {0, 2}) {
    DataLoader loader(Numbers(6,
                              [](int64_t i) {
                                if (i == 1) throw IoError("[test] damaged.");
                              }),
                      {.num_workers = workers});
    auto it = loader.begin();
    CHECK_THROWS_AS(++it, IoError);
    CHECK(message_of([&] { ++it; }) == "[dataloader] this iteration ended with an exception; begin another one.");
  }
}

TEST_CASE("pin_memory without a device does nothing and warns once") {
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

TEST_CASE("more workers load more samples at once, which hides the latency of loading") {
  for (const int workers : {1, 2, 4}) {
    CAPTURE(workers);
    std::mutex mutex;
    std::condition_variable all_there;
    int loading = 0, most = 0;
    const Numbers data(40, [&](int64_t) {  // each sample waits until all workers are loading
      std::unique_lock lock(mutex);
      most = std::max(most, ++loading);
      all_there.notify_all();
      all_there.wait_for(lock, std::chrono::seconds(20), [&] { return most >= workers; });
      --loading;
    });
    DataLoader loader(data, {.num_workers = workers});
    CHECK(walk(loader).size() == 40);
    CHECK(most == workers);
  }
}

TEST_CASE("data/wait_warning_only_when_measured") {
  TestClock clock;
  const auto walked = [&](int workers, double data_seconds, double step_seconds) {
    auto loader = std::make_unique<ClockedLoader>(
        Numbers(12, [&clock, data_seconds](int64_t) { clock.advance(data_seconds); }), workers, clock);
    CHECK(loader->wait_advice().empty());
    for (const Batch& batch : *loader) {
      static_cast<void>(batch);
      clock.advance(step_seconds);
    }
    return loader;
  };
  const auto slow = walked(0, 0.02, 0);
  CHECK(slow->times().batches == 12);
  CHECK(slow->times().share() == approx(1, {.relative = 1e-9}));
  CHECK(slow->times().wait == approx(0.24, {.relative = 1e-9}));
  CHECK(slow->times().total == approx(0.24, {.relative = 1e-9}));
  CHECK(slow->wait_advice().starts_with(
      "[dataloader] 100 % of the last 0.24 s went by waiting for data, with num_workers = 0. Raise it (this machine"));
  CHECK(walked(0, 2, 13)->wait_advice().starts_with("[dataloader] 13 % of"));
  CHECK(walked(0, 1, 15)->wait_advice().empty());  // 6 %; there is no advice below 10 %
  CHECK_FALSE(walked(0, 1, 15)->wait_advice(0.05).empty());
  // Batches that a worker has ready cause no wait, so there is no advice.
  const auto fast = walked(1, 0, 0.02);
  CHECK(fast->times().share() == 0);
  CHECK(fast->times().total == approx(0.24, {.relative = 1e-9}));
  CHECK(fast->wait_advice(0).empty());
  // The total does not change after the iteration.
  clock.advance(5);
  CHECK(fast->times().total == approx(0.24, {.relative = 1e-9}));
}

TEST_CASE("the time that an iteration waits for its worker is measured") {
  TestClock clock;
  const Numbers data(12, [&](int64_t i) {
    clock.wait_for_pull_of(i);
    clock.advance(0.03);
  });
  ClockedLoader loader(data, 1, clock);
  for (const Batch& batch : loader) {
    static_cast<void>(batch);
    clock.advance(0.01);
  }
  CHECK(loader.times().wait == approx(0.36, {.relative = 1e-9}));
  CHECK(loader.times().share() == approx(0.75, {.relative = 1e-9}));
  CHECK(loader.wait_advice().find("75 % of the last 0.48 s went by waiting for data, with num_workers = 1") !=
        std::string::npos);
}

TEST_CASE("a state survives the conversion to plain values and back") {
  DataLoader loader(Numbers(20), {.batch_size = 3, .shuffle = true, .seed = 0xfedcba9876543210});
  auto it = loader.begin();
  ++it;
  const LoaderState state = loader.state();
  CHECK(LoaderState::from_map(state.to_map()) == state);
  CHECK(state.at_epoch(5) == LoaderState{.epoch = 5, .seed = state.seed, .samples = 20, .batch_size = 3});
  CHECK_THROWS_AS(LoaderState::from_map(StateMap()), StateError);
}

TEST_CASE("manual_seed reaches loaders without a seed of their own, also those that are made before it") {
  for (const bool samples : {false, true}) {
    const auto orders = [&](std::uint64_t seed, int workers) {
      DataLoaderOptions options{.batch_size = 3, .num_workers = workers};
      samples ? void(options.sampler = std::make_shared<RandomSampler>(20)) : void(options.shuffle = true);
      DataLoader first(Numbers(20), options), second(Numbers(20), {.batch_size = 3, .shuffle = true});
      manual_seed(seed);
      std::vector<Content> walks{walk(first), walk(first), walk(second)};
      CHECK(walks[0] != walks[1]);
      CHECK(walks[0] != walks[2]);  // two loaders draw two seeds
      return walks;
    };
    CHECK(orders(1, 0) == orders(1, 3));
    CHECK(orders(1, 0) != orders(2, 0));
  }
}

TEST_CASE("a loader that neither shuffles nor samples draws nothing from the default generator") {
  manual_seed(1);
  DataLoader loader(Numbers(20), {.batch_size = 3});
  walk(loader);
  CHECK(loader.state().seed == 1);
  CHECK(default_generator().state().offset == 0);
}

TEST_CASE("a state carries drawn seeds, and one without that of a sampler means seed 0, as in older versions") {
  const auto make = [](std::optional<std::uint64_t> seed) {
    const auto sampler = seed ? std::make_shared<RandomSampler>(20, *seed) : std::make_shared<RandomSampler>(20);
    return DataLoader(Numbers(20), {.batch_size = 3, .sampler = sampler});
  };
  manual_seed(1);
  DataLoader loader = make({});
  auto it = loader.begin();
  ++it;
  const LoaderState state = loader.state();
  CHECK(LoaderState::from_map(state.to_map()) == state);
  const auto rest_of = [](DataLoader::Iterator from) {
    std::vector<int64_t> list;
    for (; from != DataLoader::end(); ++from)
      for (const int64_t i : (*from)[0].to_vector<int64_t>()) list.push_back(i);
    return list;
  };
  ++it;
  const auto rest = rest_of(std::move(it));
  manual_seed(2);
  DataLoader resumed = make({}), given = make(7), same = make(7);
  resumed.load_state(state);
  CHECK(rest_of(resumed.begin()) == rest);
  given.load_state(state);
  CHECK(rest_of(given.begin()) == rest_of(same.begin_at(2)));  // it keeps its own

  const StateMap now = loader.state().at_epoch(0).to_map();
  StateMap old;
  for (const auto& [key, value] : now.values())
    if (key != "sampler_seed") old.set(key, value);
  DataLoader continued = make({}), zero = make(0);
  continued.load_state(LoaderState::from_map(old));
  CHECK(indices(walk(continued)) == indices(walk(zero)));
}

TEST_CASE("a loader takes over the seeds of another rank's") {
  manual_seed(1);
  DataLoader zero(Numbers(20), {.batch_size = 3, .shuffle = true});
  const LoaderState seeds = zero.state();
  manual_seed(2);
  DataLoader other(Numbers(20), {.batch_size = 3, .shuffle = true});
  other.set_epoch(4);
  other.take_seeds(seeds);
  CHECK(other.epoch() == 4);
  zero.set_epoch(4);
  CHECK(walk(other) == walk(zero));
}

TEST_CASE("a shuffled validation resumes in the middle with another number of workers") {
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
