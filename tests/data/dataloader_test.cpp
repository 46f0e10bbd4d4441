#include <doctest/doctest.h>
#include <levin/core/parallel.h>
#include <levin/data/dataloader.h>

#include "counted_data.h"
#include "damage.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

TEST_CASE("batches cover the data in order") {
  DataLoader loader(Numbers(10), {.batch_size = 4});
  CHECK(loader.size() == 3);
  const Content c = walk(loader);
  REQUIRE(c.size() == 3);
  CHECK(c[0].first == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(c[2].first == std::vector<int64_t>{8, 9});
  DataLoader dropping(Numbers(10), {.batch_size = 4, .drop_last = true});
  CHECK(dropping.size() == 2);
  CHECK(walk(dropping).size() == 2);
}

TEST_CASE("the API's one-line loop compiles and runs") {
  int64_t rows = 0;
  for (const auto& [x, y] :
       DataLoader(TensorDataset({empty({5, 2}), empty({5})}), {.batch_size = 2, .shuffle = true, .num_workers = 2})) {
    CHECK(x.size(0) == y.size(0));
    rows += x.size(0);
  }
  CHECK(rows == 5);
}

TEST_CASE("data/same_batches_for_any_workers") {
  const auto epochs = [](int workers, int prefetch) {
    DataLoader loader(
        Numbers(53),
        {.batch_size = 5, .shuffle = true, .num_workers = workers, .prefetch_factor = prefetch, .seed = 11});
    return std::vector<Content>{walk(loader), walk(loader), walk(loader)};
  };
  const auto expected = epochs(0, 2);
  CHECK(expected[0] != expected[1]);
  for (const Content& c : expected) {
    std::vector<int64_t> list = indices(c);
    std::sort(list.begin(), list.end());
    std::vector<int64_t> all(53);
    std::iota(all.begin(), all.end(), 0);
    CHECK(list == all);
  }
  for (const int workers : {1, 2, 7}) {
    CHECK(epochs(workers, 2) == expected);
    CHECK(epochs(workers, 1) == expected);
  }
  DataLoader other(Numbers(53), {.batch_size = 5, .shuffle = true, .seed = 12});
  CHECK(walk(other) != expected[0]);
}

TEST_CASE("each sample has its own random numbers in each epoch") {
  DataLoader plain(Numbers(6), {.batch_size = 6, .seed = 1}),
      shuffled(Numbers(6), {.batch_size = 2, .shuffle = true, .seed = 1});
  const auto in_order = walk(plain)[0].second;
  for (const auto& [x, r] : walk(shuffled)) {
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(r[i] == in_order[static_cast<std::size_t>(x[i])]);
  }
  CHECK(std::set<double>(in_order.begin(), in_order.end()).size() == 6);
  CHECK(walk(plain)[0].second != in_order);
}

TEST_CASE("without a seed the default generator's seed is used") {
  const GeneratorState kept = default_generator().state();
  const auto order_after = [](std::uint64_t seed) {
    manual_seed(seed);
    DataLoader loader(Numbers(40), {.shuffle = true});
    return indices(walk(loader));
  };
  CHECK(order_after(1) == order_after(1));
  CHECK(order_after(1) != order_after(2));
  default_generator().set_state(kept);
}

TEST_CASE("a state continues with the next batch that was not returned") {
  for (const int workers : {0, 2}) {
    const DataLoaderOptions options{.batch_size = 3, .shuffle = true, .num_workers = workers, .seed = 5};
    DataLoader whole(Numbers(20), options);
    std::vector<Content> expected{walk(whole), walk(whole)};
    for (int64_t stop = 0; stop <= 7; ++stop) {
      DataLoader first(Numbers(20), options);
      LoaderState state = first.state();
      if (stop > 0) {
        for (auto it = first.begin(); it != first.end(); ++it) {
          state = first.state();
          if (it.index() + 1 == stop) break;
        }
      }
      CHECK(state.batches == stop);
      // Another seed, which the state overrides.
      DataLoader second(Numbers(20), {.batch_size = 3, .shuffle = true, .num_workers = workers, .seed = 99});
      second.load_state(state);
      CHECK(second.state() == state);
      second.set_epoch(state.epoch);  // as a training loop does; keeps the position
      const Content rest = walk(second);
      CHECK(rest == Content(expected[0].begin() + stop, expected[0].end()));
      CHECK(walk(second) == expected[1]);
    }
  }
}

TEST_CASE("skipped batches are not loaded") {
  std::atomic<int> loaded{0};
  for (const int workers : {0, 2}) {
    loaded = 0;
    DataLoader loader(Numbers(20, [&](int64_t) { ++loaded; }), {.batch_size = 2, .num_workers = workers});
    auto it = loader.begin_at(8);
    CHECK(it.index() == 8);
    CHECK((*it)[0].to_vector<int>() == std::vector<int>{16, 17});
    CHECK(++it != loader.end());
    CHECK(++it == loader.end());
    CHECK(loaded == 4);
    CHECK(loader.epoch() == 1);
    CHECK(loader.begin_at(10) == loader.end());
    CHECK_THROWS_AS(loader.begin_at(11), IndexError);
  }
}

TEST_CASE("the epoch is incremented, also if an iteration is abandoned") {
  DataLoader loader(Numbers(30), {.batch_size = 3, .shuffle = true, .num_workers = 2, .seed = 3});
  const Content e0 = walk(loader), e1 = walk(loader), e2 = walk(loader);
  loader.set_epoch(0);
  CHECK(loader.state().epoch == 0);
  for (auto& batch : loader) {
    CHECK(batch[0].to_vector<int64_t>() == e0[0].first);
    CHECK(loader.epoch() == 0);
    CHECK(loader.state().batches == 1);
    break;
  }
  CHECK(walk(loader) == e1);
  CHECK(walk(loader) == e2);
  loader.set_epoch(1);
  CHECK(walk(loader) == e1);
  CHECK_THROWS_AS(loader.set_epoch(-1), ValueError);
  auto old = loader.begin();
  auto fresh = loader.begin();
  CHECK_THROWS_AS(++old, Error);
  CHECK(++fresh != loader.end());
}

TEST_CASE("an exception names worker and index, keeps its type, and leaves the loader usable") {
  std::atomic<bool> broken{true};
  const Numbers data(40, [&](int64_t i) {
    if (i == 23 && broken) throw IoError("[test] the image is damaged.");
  });
  for (const int workers : {0, 1, 3}) {
    broken = true;
    DataLoader loader(data, {.batch_size = 4, .num_workers = workers});
    Content before;
    const std::string text = message_of([&] {
      for (auto& [x, r] : loader) before.emplace_back(x.to_vector<int64_t>(), r.to_vector<double>());
    });
    CHECK(before.size() == 5);  // all batches before the bad one were returned
    if (workers == 0) {
      CHECK(text == "[dataloader] index 23: [test] the image is damaged.");
    } else {
      CHECK(text.starts_with("[dataloader] worker "));
      CHECK(text.ends_with(", index 23: [test] the image is damaged."));
    }
    broken = false;
    CHECK(walk(loader).size() == 10);
  }
}

TEST_CASE("other exceptions are nested in an Error") {
  const Numbers data(8, [](int64_t i) {
    if (i == 5) throw std::out_of_range("beyond");
  });
  for (const int workers : {0, 2}) {
    DataLoader loader(data, {.num_workers = workers});
    try {
      walk(loader);
      FAIL("nothing was thrown");
    } catch (const Error& e) {
      CHECK(std::string(e.what()).ends_with("index 5: beyond"));
      CHECK_THROWS_AS(std::rethrow_if_nested(e), std::out_of_range);
    }
  }
}

TEST_CASE("a stalled worker is named, and the loader stays usable") {
  const auto stall = std::make_shared<std::atomic<bool>>(true);  // the stalled thread may outlive this test
  const Numbers data(12, [stall](int64_t i) {
    while (i == 4 && *stall) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  DataLoader loader(data, {.batch_size = 2, .num_workers = 2, .timeout = 0.1});
  const std::string text = message_of([&] { walk(loader); });
  CHECK(text.starts_with("[dataloader] no batch came within 0.1 s: worker "));
  CHECK(text.ends_with(" is still at batch 2 (from index 4). Look at what the dataset waits for, or raise timeout."));
  *stall = false;
  CHECK(walk(loader).size() == 6);
}

TEST_CASE("data/worker_ids_stable_across_epochs") {
  std::atomic<int> loaded{0};
  std::mutex mutex;
  std::condition_variable somebody;
  std::set<std::thread::id> ids;
  std::atomic<bool> parallel{false};
  const Numbers data(100, [&](int64_t) {
    ++loaded;
    const auto me = std::this_thread::get_id();
    parallel_for(0, 4, 1, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != me) parallel = true;
    });
    std::unique_lock lock(mutex);
    ids.insert(me);
    somebody.notify_all();
    somebody.wait_for(lock, std::chrono::seconds(20), [&] { return ids.size() > 1; });  // one must not do all the work
  });
  DataLoader loader(data, {.num_workers = 2, .prefetch_factor = 3});
  {
    auto it = loader.begin();
    for (int i = 0; i < 4000 && loaded < 7; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(loaded == 7);  // the current batch and two prefetched ones per worker, of three workers
    static_cast<void>(it);
  }
  walk(loader);
  walk(loader);
  CHECK(ids.size() == 2);  // and none prefetched more than requested
  CHECK_FALSE(ids.contains(std::this_thread::get_id()));
  CHECK_FALSE(parallel);
}

TEST_CASE("samplers and collate functions") {
  DataLoader weighted(Numbers(10),
                      {.batch_size = 5, .sampler = std::make_shared<SubsetSampler>(std::vector<int64_t>{7, 3, 3})});
  CHECK(weighted.size() == 1);
  CHECK(indices(walk(weighted)) == std::vector<int64_t>{7, 3, 3});
  for (const int workers : {0, 2}) {
    DataLoader summing(Numbers(6),
                       {.batch_size = 3, .num_workers = workers, .collate = [](std::span<const Sample> samples) {
                          int64_t sum = 0;
                          for (const Sample& s : samples) sum += s[0].item<int64_t>();
                          return Batch{from_data<std::int64_t>({sum}, {1})};
                        }});
    std::vector<int64_t> sums;
    for (const Batch& b : summing) sums.push_back(b[0].item<int64_t>());
    CHECK(sums == std::vector<int64_t>{3, 12});
  }
  DataLoader outside(Numbers(5), {.sampler = std::make_shared<SequentialSampler>(6)});
  CHECK_THROWS_WITH_AS(outside.begin(), "[dataloader] the sampler gave index 5, but the dataset has 5 samples.",
                       IndexError);
}

TEST_CASE("invalid options are refused") {
  const auto error = [](const DataLoaderOptions& o) { return message_of([&] { DataLoader(Numbers(5), o); }); };
  CHECK(error({.batch_size = 0}) == "[dataloader] batch_size is 0; use 1 or more.");
  CHECK(error({.num_workers = -1}) == "[dataloader] num_workers is -1; use 0 or more.");
  CHECK(error({.prefetch_factor = 0}) == "[dataloader] prefetch_factor is 0; use 1 or more.");
  CHECK(error({.timeout = -1}) == "[dataloader] timeout is -1 s; use 0 (none) or more.");
  CHECK(error({.shuffle = true, .sampler = std::make_shared<SequentialSampler>(5)}).find("both given") !=
        std::string::npos);
  CHECK(error({.batch_size = 6, .drop_last = true}) ==
        "[dataloader] 5 samples make no batch of 6 with drop_last; use a smaller batch_size.");
  CHECK(message_of([] { DataLoader(Numbers(0), {}); }) ==
        "[dataloader] the dataset is empty; there is nothing to load.");
}

TEST_CASE("a state of different data is refused") {
  DataLoader loader(Numbers(20), {.batch_size = 3}), other(Numbers(20), {.batch_size = 4});
  CHECK_THROWS_WITH_AS(
      other.load_state(loader.state()),
      "[dataloader] the state is of 20 samples in batches of 3, this loader has 20 in batches of 4. Resume "
      "with the same data and batch size.",
      StateError);
  LoaderState damaged = loader.state();
  damaged.batches = 8;
  CHECK_THROWS_AS(loader.load_state(damaged), StateError);
}

TEST_CASE("a destroyed loader frees everything") {
  const int64_t live = Storage::live_count();
  {
    DataLoader loader(Numbers(50), {.batch_size = 2, .num_workers = 3});
    auto it = loader.begin();
    DataLoader moved = std::move(loader);
    CHECK(++it != moved.end());
    static_cast<void>(walk(moved));
  }
  {
    DataLoader once(Numbers(50), {.batch_size = 2, .num_workers = 2, .persistent_workers = false});
    CHECK(walk(once).size() == 25);
    CHECK(walk(once).size() == 25);
  }
  CHECK(Storage::live_count() == live);
}
