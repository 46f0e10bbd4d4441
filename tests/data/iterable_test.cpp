#include <doctest/doctest.h>
#include <levin/data/dataloader.h>

#include "counted_data.h"
#include "damage.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

/// Shard s holds sizes[s] samples: 100 s + position, and a number drawn while preparing. `offset` of a shard comes from
/// the generator that opened it.
class Shards final : public IterableDataset {
 public:
  using Hook = std::function<void(int64_t)>;
  explicit Shards(std::vector<int64_t> sizes, Hook on_next = {}, Hook on_prepare = {})
      : sizes_(std::move(sizes)), on_next_(std::move(on_next)), on_prepare_(std::move(on_prepare)) {}
  int64_t shards() const override { return static_cast<int64_t>(sizes_.size()); }

  std::unique_ptr<SampleStream> open(int64_t shard, Generator rng) const override {
    struct Stream final : SampleStream {
      std::optional<Sample> next() override {
        if (at >= size) return std::nullopt;
        if (*hook) (*hook)(first + at);
        return Sample{from_data<int64_t>({first + at++}, {}), from_data<double>({offset}, {})};
      }
      int64_t first = 0, size = 0, at = 0;
      double offset = 0;
      const Hook* hook = nullptr;
    };
    auto stream = std::make_unique<Stream>();
    stream->first = 100 * shard;
    stream->size = sizes_[static_cast<std::size_t>(shard)];
    stream->offset = std::floor(rng.uniform() * 1000);
    stream->hook = &on_next_;
    return stream;
  }

  Sample prepare(Sample sample, Generator& rng) const override {
    if (on_prepare_) on_prepare_(sample[0].item<int64_t>());
    return {sample[0], from_data<double>({sample[1].item<double>() + rng.uniform()}, {})};
  }

 private:
  std::vector<int64_t> sizes_;
  Hook on_next_, on_prepare_;
};

const std::vector<int64_t> kSizes{5, 0, 2, 7};

}  // namespace

TEST_CASE("shards alternate, and exhausted ones are skipped") {
  DataLoader loader(Shards(kSizes), {.batch_size = 2, .seed = 1});
  CHECK_FALSE(loader.has_size());
  CHECK_THROWS_AS(loader.size(), UsageError);
  CHECK_FALSE(loader.dataset());
  const Content c = walk(loader);
  std::vector<std::vector<int64_t>> batches;
  for (const auto& [x, r] : c) batches.push_back(x);
  CHECK(batches ==
        std::vector<std::vector<int64_t>>{{0, 1}, {200, 201}, {300, 301}, {2, 3}, {302, 303}, {4}, {304, 305}, {306}});
  CHECK(walk(loader)[0].second != c[0].second);  // another epoch has other numbers
  std::set<double> numbers;
  for (const auto& [x, r] : c) {
    for (const double v : r) numbers.insert(v - std::floor(v));
  }
  CHECK(numbers.size() == 14);  // each sample has its own number
  DataLoader dropping(Shards(kSizes), {.batch_size = 2, .drop_last = true, .seed = 1});
  CHECK(walk(dropping).size() == 6);
  DataLoader empty(Shards({0, 0}), {.batch_size = 2});
  CHECK(walk(empty).empty());
}

TEST_CASE("streams give the same batches for any number of workers, and resume after any batch") {
  const auto make = [](int workers, int64_t batch) {
    return DataLoader(Shards(kSizes), {.batch_size = batch, .num_workers = workers, .seed = 8});
  };
  for (const int64_t size : {int64_t{1}, int64_t{3}}) {
    DataLoader plain = make(0, size);
    const std::vector<Content> expected{walk(plain), walk(plain)};
    for (const int workers : {0, 1, 2, 7}) {
      DataLoader loader = make(workers, size);
      CHECK(walk(loader) == expected[0]);
      CHECK(walk(loader) == expected[1]);
      const auto batches = static_cast<int64_t>(expected[0].size());
      for (int64_t stop = 1; stop <= batches; ++stop) {
        DataLoader first = make(workers, size);
        auto it = first.begin_at(stop - 1);
        CHECK((*it)[0].to_vector<int64_t>() == expected[0][static_cast<std::size_t>(stop) - 1].first);
        const LoaderState state = LoaderState::from_map(first.state().to_map());
        CHECK(state.batches == stop);
        DataLoader second = make(workers == 0 ? 3 : 0, size);
        second.load_state(state);
        CHECK(walk(second) == Content(expected[0].begin() + stop, expected[0].end()));
        CHECK(walk(second) == expected[1]);
      }
    }
  }
}

TEST_CASE("the shards are divided between ranks") {
  DataLoader whole(Shards({3, 4, 5, 6, 7}), {.batch_size = 2, .seed = 2});
  std::set<std::pair<int64_t, double>> all;
  std::size_t samples = 0;
  for (int rank = 0; rank < 2; ++rank) {
    DataLoader part(Shards({3, 4, 5, 6, 7}),
                    {.batch_size = 2, .num_workers = 2, .seed = 2, .num_replicas = 2, .rank = rank});
    for (const auto& [x, r] : walk(part)) {
      for (std::size_t i = 0; i < x.size(); ++i) all.emplace(x[i], r[i]);
      samples += x.size();
      CHECK((x[0] / 100) % 2 == rank);
    }
  }
  CHECK(samples == 25);
  std::set<std::pair<int64_t, double>> expected;
  for (const auto& [x, r] : walk(whole)) {
    for (std::size_t i = 0; i < x.size(); ++i) expected.emplace(x[i], r[i]);
  }
  CHECK(all == expected);  // a sample's numbers do not depend on the rank that loads it
}

TEST_CASE("one shard is read in order while several workers prepare") {
  std::atomic<int> reading{0}, most_reading{0};
  const auto read = [&](int64_t) {
    const int now = ++reading;
    for (int seen = most_reading; now > seen && !most_reading.compare_exchange_weak(seen, now);) {
    }
    std::this_thread::yield();
    --reading;
  };
  // Two workers must be inside prepare() at the same time; a single one gives up after the deadline, however busy the
  // machine.
  std::mutex door;
  std::condition_variable somebody;
  int preparing = 0;
  bool met = false;
  const auto prepare = [&](int64_t) {
    std::unique_lock lock(door);
    met = met || ++preparing > 1;
    somebody.notify_all();
    somebody.wait_for(lock, std::chrono::seconds(20), [&] { return met; });
    --preparing;
  };
  DataLoader loader(Shards({24}, read, prepare), {.batch_size = 2, .num_workers = 3});
  std::vector<int64_t> expected(24);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = static_cast<int64_t>(i);
  CHECK(indices(walk(loader)) == expected);
  CHECK(most_reading == 1);
  CHECK(met);
}

TEST_CASE("a stream's exception names shard and sample, and the loader stays usable") {
  std::atomic<bool> broken{true};
  const Shards reading({6, 6}, [&](int64_t i) {
    if (i == 103 && broken) throw IoError("[test] the archive is damaged.");
  });
  const Shards preparing({6, 6}, {}, [&](int64_t i) {
    if (i == 103 && broken) throw IoError("[test] the archive is damaged.");
  });
  for (const Shards& data : {reading, preparing}) {
    for (const int workers : {0, 1, 4}) {
      broken = true;
      DataLoader loader(data, {.batch_size = 2, .num_workers = workers});
      Content before;
      const std::string text = message_of([&] {
        for (auto& [x, r] : loader) before.emplace_back(x.to_vector<int64_t>(), r.to_vector<double>());
      });
      CHECK(before.size() == 3);
      CHECK(text.ends_with("sample 3 of shard 1: [test] the archive is damaged."));
      broken = false;
      CHECK(walk(loader).size() == 6);
    }
  }
}

TEST_CASE("a stalled shard is named") {
  const auto stall = std::make_shared<std::atomic<bool>>(true);
  const Shards data({4, 4}, [stall](int64_t i) {
    while (i == 102 && *stall) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  });
  DataLoader loader(data, {.batch_size = 2, .num_workers = 2, .timeout = 0.2});
  const std::string text = message_of([&] { walk(loader); });
  CHECK(text.find("still at batch 1 of shard 1. Look at") != std::string::npos);
  *stall = false;
  CHECK(walk(loader).size() == 4);
}

TEST_CASE("options that an iterable dataset does not support are refused") {
  const auto error = [](const DataLoaderOptions& o) { return message_of([&] { DataLoader(Shards({1, 2}), o); }); };
  CHECK(error({.shuffle = true}).find("no indices to shuffle or sample") != std::string::npos);
  CHECK(error({.sampler = std::make_shared<SequentialSampler>(2)}).find("no indices") != std::string::npos);
  CHECK(error({.num_replicas = 3, .rank = 0}) ==
        "[dataloader] 2 shards cannot be read by 3 ranks; give each rank one or more.");
  CHECK(error({.num_replicas = 2, .rank = 2}) == "[dataloader] rank 2 of 2 does not exist; ranks count from 0.");
  DataLoader two(Shards({1, 2}), {}), three(Shards({1, 2, 3}), {});
  CHECK_THROWS_WITH_AS(
      three.load_state(two.state()),
      "[dataloader] the state is of 2 shards in batches of 1, this loader has 3 in batches of 1. Resume "
      "with the same data and batch size.",
      StateError);
  LoaderState damaged = two.state();
  damaged.batches = 4;
  CHECK_THROWS_AS(two.load_state(damaged), StateError);
}
