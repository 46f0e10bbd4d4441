#include <doctest/doctest.h>
#include <levin/data/combined_loader.h>

#include "counted_data.h"
#include "damage.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

std::shared_ptr<DataLoader> numbers(int64_t n, int64_t batch, int workers = 0, bool shuffle = true,
                                    std::uint64_t seed = 1) {
  return std::make_shared<DataLoader>(
      Numbers(n), DataLoaderOptions{.batch_size = batch, .shuffle = shuffle, .num_workers = workers, .seed = seed});
}

/// The contents of each part of each batch; empty for a loader that had ended.
using Rows = std::vector<std::vector<std::vector<int64_t>>>;

Rows rows_of(const Batch& batch) {
  Rows one(1);
  for (int i = 0; i < batch.parts(); ++i) {
    const Batch part = batch.part(i);
    one[0].push_back(part.tensors.empty() ? std::vector<int64_t>{} : part[0].to_vector<int64_t>());
  }
  if (batch.entries.empty()) one[0].push_back({batch.dataloader_idx});
  return one;
}

Rows walk_all(DataLoader& loader) {
  Rows rows;
  for (const Batch& batch : loader) rows.push_back(rows_of(batch)[0]);
  return rows;
}

constexpr CombinedMode kModes[] = {CombinedMode::min_size, CombinedMode::max_size_cycle, CombinedMode::max_size,
                                   CombinedMode::sequential};

}  // namespace

TEST_CASE("the four modes of CombinedLoader") {
  const auto make = [](CombinedMode mode) {
    return CombinedLoader({numbers(3, 1, 0, false), numbers(4, 2, 0, false)}, mode);
  };
  CombinedLoader least = make(CombinedMode::min_size);
  CHECK(least.size() == 2);
  CHECK(walk_all(least) == Rows{{{0}, {0, 1}}, {{1}, {2, 3}}});
  CombinedLoader cycle = make(CombinedMode::max_size_cycle);
  CHECK(cycle.size() == 3);
  CHECK(walk_all(cycle) == Rows{{{0}, {0, 1}}, {{1}, {2, 3}}, {{2}, {0, 1}}});
  CombinedLoader most = make(CombinedMode::max_size);
  CHECK(most.size() == 3);
  CHECK(walk_all(most) == Rows{{{0}, {0, 1}}, {{1}, {2, 3}}, {{2}, {}}});
  CombinedLoader row = make(CombinedMode::sequential);
  CHECK(row.size() == 5);
  CHECK(walk_all(row) == Rows{{{0}, {0}}, {{1}, {0}}, {{2}, {0}}, {{0, 1}, {1}}, {{2, 3}, {1}}});
  CHECK(parse_combined_mode("max_size_cycle") == CombinedMode::max_size_cycle);
  CHECK_THROWS_AS(parse_combined_mode("max"), ValueError);
  CHECK_THROWS_AS(CombinedLoader({}), ValueError);
}

TEST_CASE("a combined batch keeps its parts and size, also when moved to a device") {
  CombinedLoader loader({numbers(6, 2), numbers(9, 3)});
  auto it = loader.begin();
  CHECK(it->size() == 5);
  CHECK(it->tensors.size() == 4);
  const Batch moved = it->to(kCpu);
  CHECK(moved.parts() == 2);
  CHECK(moved.part(1).size() == 3);
  CHECK(moved.part(1)[1].dtype() == kFloat64);
  CHECK_THROWS_AS(moved.part(2), IndexError);
}

TEST_CASE("a combined iteration is the same for any number of workers and resumes after any batch") {
  for (const CombinedMode mode : kModes) {
    const auto make = [mode](int workers, std::uint64_t seed) {
      return CombinedLoader({numbers(5, 1, workers, true, seed), numbers(6, 2, workers, true, seed + 1),
                             numbers(2, 1, workers, true, seed + 2)},
                            mode);
    };
    CombinedLoader plain = make(0, 7);
    const std::vector<Rows> expected{walk_all(plain), walk_all(plain), walk_all(plain)};
    CHECK(expected[0].size() == static_cast<std::size_t>(plain.size()));
    CHECK(expected[0] != expected[1]);
    CombinedLoader threaded = make(2, 7);
    for (const Rows& rows : expected) CHECK(walk_all(threaded) == rows);
    for (int64_t stop = 1; stop <= plain.size(); ++stop) {
      CombinedLoader first = make(1, 7);
      auto it = first.begin();
      for (int64_t i = 1; i < stop; ++i) ++it;
      const LoaderState state = LoaderState::from_map(first.state().to_map());
      CHECK(state.batches == stop);
      CombinedLoader second = make(2, 99);  // other seeds, which the state overrides
      second.load_state(state);
      second.set_epoch(0);
      CHECK(walk_all(second) == Rows(expected[0].begin() + stop, expected[0].end()));
      CHECK(walk_all(second) == expected[1]);
      CombinedLoader third = make(0, 99);  // a finished epoch
      third.load_state(state.at_epoch(2));
      CHECK(walk_all(third) == expected[2]);
    }
  }
}

TEST_CASE("a shorter loader's second cycle has another order") {
  CombinedLoader loader({numbers(30, 1), numbers(10, 1)}, CombinedMode::max_size_cycle);
  std::vector<std::vector<int64_t>> cycles(3);
  int64_t i = 0;
  for (const Batch& b : loader) cycles[static_cast<std::size_t>(i++ / 10)].push_back(b.part(1)[0].item<int64_t>());
  CHECK(cycles[0] != cycles[1]);
  CHECK(cycles[1] != cycles[2]);
  for (auto& c : cycles) {
    std::sort(c.begin(), c.end());
    CHECK(c.front() == 0);
    CHECK(std::adjacent_find(c.begin(), c.end()) == c.end());
  }
}

TEST_CASE("a combined state of different loaders is refused") {
  CombinedLoader two({numbers(4, 1), numbers(4, 1)}), three({numbers(4, 1), numbers(4, 1), numbers(4, 1)});
  CHECK_THROWS_WITH_AS(three.load_state(two.state()),
                       "[combined_loader] the state is of 2 loaders, there are 3. Resume with the same.", StateError);
  CombinedLoader other({numbers(4, 1), numbers(5, 1)});
  CHECK_THROWS_AS(other.load_state(two.state()), StateError);
  CHECK_THROWS_AS(two.load_state(numbers(4, 1)->state()), StateError);
}

TEST_CASE("an exception in a part is rethrown by the combined iteration, which can be restarted") {
  bool broken = true;
  const auto failing = std::make_shared<DataLoader>(Numbers(4, [&](int64_t i) {
    if (i == 2 && broken) throw IoError("[test] damaged.");
  }));
  CombinedLoader loader({numbers(4, 1, 2), failing});
  CHECK(message_of([&] { walk_all(loader); }) == "[dataloader] index 2: [test] damaged.");
  broken = false;
  CHECK(walk_all(loader).size() == 4);
}

TEST_CASE("combined_loader: the shards of an evaluation repeat no sample") {
  const CombinedLoader all({numbers(5, 1, 0, false), numbers(3, 1, 0, false)}, CombinedMode::sequential);
  for (const bool pad : {true, false}) {
    std::multiset<int64_t> seen;
    for (const int rank : {0, 1}) {
      const auto share = all.share_of(2, rank, pad);
      for (const int64_t i : indices(walk(*share))) seen.insert(i);
    }
    CHECK(seen.size() == (pad ? 10 : 8));
    if (!pad) CHECK(seen == std::multiset<int64_t>{0, 0, 1, 1, 2, 2, 3, 4});
  }
}
