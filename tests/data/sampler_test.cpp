#include <doctest/doctest.h>
#include <levin/core/error.h>
#include <levin/data/sampler.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

using namespace levin;
using namespace levin::data;

namespace {

std::vector<int64_t> sorted(std::vector<int64_t> v) {
  std::sort(v.begin(), v.end());
  return v;
}

std::vector<int64_t> iota(int64_t n) {
  std::vector<int64_t> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 0);
  return v;
}

}  // namespace

TEST_CASE("sequential") {
  CHECK(SequentialSampler(4).indices(7) == iota(4));
  CHECK(SequentialSampler(0).size() == 0);
}

TEST_CASE("a random order is a permutation, and all orders are equally likely") {
  Generator rng(4);
  CHECK(permutation(0, rng).empty());
  CHECK(permutation(1, rng) == iota(1));
  CHECK(sorted(permutation(1000, rng)) == iota(1000));
  std::map<std::vector<int64_t>, int> counts;
  constexpr int draws = 24000;
  for (int i = 0; i < draws; ++i) ++counts[permutation(4, rng)];
  CHECK(counts.size() == 24);
  const double expected = draws / 24.0;
  double chi_squared = 0;
  for (const auto& [order, count] : counts) chi_squared += (count - expected) * (count - expected) / expected;
  CHECK(chi_squared < 23 + 5 * std::sqrt(2 * 23.0));  // 23 degrees of freedom, five deviations
}

TEST_CASE("a random order changes with epoch and seed and is repeatable") {
  const RandomSampler a(100, 1);
  CHECK(sorted(a.indices(0)) == iota(100));
  CHECK(a.indices(0) != iota(100));
  CHECK(a.indices(0) == RandomSampler(100, 1).indices(0));
  CHECK(a.indices(0) != a.indices(1));
  CHECK(a.indices(0) != RandomSampler(100, 2).indices(0));
  CHECK_THROWS_AS(RandomSampler(0), ValueError);
}

TEST_CASE("random with a number of samples") {
  const RandomSampler longer(10, 0, {.num_samples = 25});
  const auto list = longer.indices(0);
  CHECK(longer.size() == 25);
  CHECK(sorted({list.begin(), list.begin() + 10}) == iota(10));
  CHECK(sorted({list.begin() + 10, list.begin() + 20}) == iota(10));
  CHECK(std::set<int64_t>(list.begin() + 20, list.end()).size() == 5);

  const auto drawn = RandomSampler(10, 0, {.replacement = true, .num_samples = 5000}).indices(0);
  std::vector<int> counts(10);
  for (const int64_t i : drawn) ++counts[static_cast<std::size_t>(i)];
  for (const int c : counts) CHECK(std::abs(c - 500) < 5 * std::sqrt(5000 * 0.1 * 0.9));
}

TEST_CASE("subset") {
  CHECK(SubsetSampler({5, 1, 3}).indices(2) == std::vector<int64_t>{5, 1, 3});
  const SubsetSampler shuffled(iota(50), true, 3);
  CHECK(sorted(shuffled.indices(1)) == iota(50));
  CHECK(shuffled.indices(1) != shuffled.indices(2));
}

namespace {

/// The orders of samplers that are given no seed, drawn after manual_seed(seed).
std::vector<std::vector<int64_t>> orders_after(std::uint64_t seed, std::initializer_list<const Sampler*> samplers) {
  manual_seed(seed);
  std::vector<std::vector<int64_t>> orders;
  for (const Sampler* s : samplers)
    for (const int64_t epoch : {0, 1}) orders.push_back(s->indices(epoch));
  return orders;
}

}  // namespace

TEST_CASE("manual_seed reaches samplers without a seed of their own, also those that are made before it") {
  const auto orders = [](std::uint64_t seed) {
    const RandomSampler random(50);
    const SubsetRandomSampler subset(iota(50));
    const WeightedRandomSampler weighted(std::vector<double>(50, 1.0), 40);
    return orders_after(seed, {&random, &subset, &weighted});
  };
  const auto first = orders(1);
  CHECK(orders(1) == first);
  CHECK(orders(2) != first);
  for (std::size_t i = 0; i < first.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) CHECK(first[i] != first[k]);  // each sampler draws a seed of its own
}

TEST_CASE("a sampler draws its seed once, and its copies share it") {
  const RandomSampler sampler(50);
  const RandomSampler copy = sampler;
  manual_seed(1);
  const auto order = sampler.indices(3);
  const std::uint64_t drawn = default_generator().state().offset;
  CHECK(drawn == 1);
  manual_seed(2);
  CHECK(sampler.indices(3) == order);
  CHECK(copy.indices(3) == order);
  CHECK(default_generator().state().offset == 0);
  sampler.seed()->assign(9);  // as a checkpoint or rank zero does
  CHECK(copy.indices(3) == RandomSampler(50, 9).indices(3));
  const RandomSampler given(50, 4);
  given.seed()->assign(9);
  CHECK(given.indices(3) == RandomSampler(50, 4).indices(3));
  CHECK(!SubsetSampler({1, 2}).seed());
}

TEST_CASE("ranks that have drawn equally often draw the same seed") {
  const auto seed_of_rank = [](std::uint64_t rank) {
    default_generator().set_state({5, rank << 48});
    draw_seed();
    return draw_seed();
  };
  const std::uint64_t zero = seed_of_rank(0);
  CHECK(seed_of_rank(3) == zero);
  CHECK(default_generator().state() == GeneratorState{5, (std::uint64_t{3} << 48) + 2});
}

TEST_CASE("weighted with replacement follows the weights") {
  constexpr int n = 20000;
  const WeightedRandomSampler sampler({0, 1, 3, 0, 6, 0}, n);
  std::vector<int> counts(6);
  for (const int64_t i : sampler.indices(0)) ++counts[static_cast<std::size_t>(i)];
  const double p[] = {0, 0.1, 0.3, 0, 0.6, 0};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(std::abs(counts[i] - n * p[i]) <= 5 * std::sqrt(n * p[i] * (1 - p[i])));
  }
}

TEST_CASE("weighted without replacement draws each index once and favours large weights") {
  const WeightedRandomSampler sampler({1, 1, 8, 0, 1}, 2, 0, {.replacement = false});
  int heavy_first = 0;
  constexpr int epochs = 3000;
  for (int e = 0; e < epochs; ++e) {
    const auto list = sampler.indices(e);
    REQUIRE(list.size() == 2);
    REQUIRE(list[0] != list[1]);
    REQUIRE(std::count(list.begin(), list.end(), 3) == 0);
    heavy_first += list[0] == 2;
  }
  const double p = 8.0 / 11;
  CHECK(std::abs(heavy_first - epochs * p) < 5 * std::sqrt(epochs * p * (1 - p)));
  CHECK_THROWS_AS(WeightedRandomSampler({1, 0, 1}, 3, 0, {.replacement = false}), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({1, -1}, 1), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({1, NAN}, 1), ValueError);
  CHECK_THROWS_AS(WeightedRandomSampler({0, 0}, 1), ValueError);
}

TEST_CASE("data/distributed_sampler_cover") {
  for (const int64_t n : {1, 7, 8, 20, 23}) {
    for (const int ranks : {1, 2, 3, 4}) {
      for (const bool shuffle : {false, true}) {
        std::vector<int64_t> padded, exact, dropped;
        for (int r = 0; r < ranks; ++r) {
          const DistributedSampler p(n, ranks, r, {.shuffle = shuffle});
          const DistributedSampler e(n, ranks, r, {.shuffle = shuffle, .pad = false});
          const DistributedSampler d(n, ranks, r, {.shuffle = shuffle, .drop_last = true});
          for (const auto* s : {&p, &e, &d}) REQUIRE(static_cast<int64_t>(s->indices(3).size()) == s->size());
          REQUIRE(p.size() == (n + ranks - 1) / ranks);
          REQUIRE(d.size() == n / ranks);
          for (const int64_t i : p.indices(3)) padded.push_back(i);
          for (const int64_t i : e.indices(3)) exact.push_back(i);
          for (const int64_t i : d.indices(3)) dropped.push_back(i);
        }
        REQUIRE(sorted(exact) == iota(n));  // each exactly once, as evaluation needs
        REQUIRE(std::set<int64_t>(padded.begin(), padded.end()).size() == static_cast<std::size_t>(n));
        REQUIRE(std::set<int64_t>(dropped.begin(), dropped.end()).size() == dropped.size());
      }
    }
  }
  CHECK(DistributedSampler(7, 2, 1, {.shuffle = false}).indices(0) == std::vector<int64_t>{1, 3, 5, 0});
  CHECK(DistributedSampler(100, 2, 0).indices(0) != DistributedSampler(100, 2, 0).indices(1));
  CHECK_THROWS_AS(DistributedSampler(7, 2, 2), ValueError);
}

TEST_CASE("a distributed sampler's order depends only on its seed, on every rank") {
  const auto order = [](std::uint64_t seed) {
    std::vector<std::vector<int64_t>> ranks;
    for (const int rank : {0, 1, 2}) ranks.push_back(DistributedSampler(99, 3, rank, {.seed = seed}).indices(4));
    return ranks;
  };
  CHECK(order(7) == order(7));
  CHECK(order(7) != order(8));
  std::set<int64_t> all;
  for (const auto& rank : order(7)) all.insert(rank.begin(), rank.end());
  CHECK(all.size() == 99);
}
