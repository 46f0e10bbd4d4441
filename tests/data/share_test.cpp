// One loader's epoch divided between ranks.
#include <doctest/doctest.h>
#include <levin/autograd/ops.h>
#include <levin/data/combined_loader.h>
#include <levin/data/dataloader.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

using namespace levin;
using namespace levin::data;

namespace {

using Numbers = std::vector<int64_t>;

TensorDataset count_up(int64_t n) { return TensorDataset({arange(0, n)}); }

/// Returns the samples of the next iteration, batch by batch.
std::vector<Numbers> walk(DataLoader& loader) {
  std::vector<Numbers> out;
  for (const Batch& b : loader) out.push_back(b[0].to_vector<int64_t>());
  return out;
}

Numbers joined(const std::vector<Numbers>& lists) {
  Numbers out;
  for (const auto& l : lists) out.insert(out.end(), l.begin(), l.end());
  return out;
}

Numbers sorted(Numbers list) {
  std::sort(list.begin(), list.end());
  return list;
}

/// Batches of 1, 2, 3, 4 indices.
class Growing final : public BatchSampler {
 public:
  int64_t size() const override { return 4; }
  std::vector<Numbers> batches(int64_t) const override { return {{0}, {1, 2}, {3, 4, 5}, {6, 7, 8, 9}}; }
};

}  // namespace

TEST_CASE("data/distributed_sampler_cover") {
  for (const int ranks : {2, 3, 4}) {
    for (const int64_t n : {12, 13, 14, 3, 2, 1}) {
      for (const bool shuffle : {false, true}) {
        CAPTURE(ranks);
        CAPTURE(n);
        CAPTURE(shuffle);
        DataLoader all(count_up(n), {.batch_size = 2, .shuffle = shuffle, .seed = 7});
        Numbers once, padded;
        std::set<std::size_t> sizes;
        for (int r = 0; r < ranks; ++r) {
          const auto exact = all.share_of(ranks, r, /*pad=*/false), full = all.share_of(ranks, r);
          const Numbers own = joined(walk(*exact)), more = joined(walk(*full));
          once.insert(once.end(), own.begin(), own.end());
          padded.insert(padded.end(), more.begin(), more.end());
          sizes.insert(more.size());
          CHECK(exact->size() == (std::ssize(own) + 1) / 2);
        }
        Numbers every(static_cast<std::size_t>(n));
        std::iota(every.begin(), every.end(), 0);
        CHECK(sorted(once) == every);  // each sample once
        CHECK(sizes.size() == 1);      // the same number on all ranks
        CHECK(std::ssize(padded) == (n + ranks - 1) / ranks * ranks);
        const std::set<int64_t> seen(padded.begin(), padded.end());
        CHECK(std::ssize(seen) == n);
      }
    }
  }
}

TEST_CASE("share: the ranks' batches together are one rank's global batches") {
  DataLoader whole(count_up(24), {.batch_size = 6, .shuffle = true, .drop_last = true, .seed = 3});
  DataLoader parts(count_up(24), {.batch_size = 2, .shuffle = true, .drop_last = true, .seed = 3});
  std::vector<std::shared_ptr<DataLoader>> ranks;
  for (int r = 0; r < 3; ++r) ranks.push_back(parts.share_of(3, r));
  std::vector<Numbers> first;
  for (int epoch = 0; epoch < 3; ++epoch) {
    const auto batches = walk(whole);
    if (epoch == 0) first = batches;
    CHECK((batches == first) == (epoch == 0));
    std::vector<std::vector<Numbers>> shares;
    for (const auto& r : ranks) shares.push_back(walk(*r));
    for (std::size_t b = 0; b < batches.size(); ++b)
      CHECK(sorted(joined({shares[0][b], shares[1][b], shares[2][b]})) == sorted(batches[b]));
  }
}

TEST_CASE("share: set_epoch selects the order, and a share starts with its loader's epoch") {
  DataLoader all(count_up(10), {.batch_size = 5, .shuffle = true, .seed = 1});
  const auto share = all.share_of(2, 1);
  const auto epoch0 = walk(*share), epoch1 = walk(*share);
  CHECK(epoch0 != epoch1);
  share->set_epoch(0);
  CHECK(walk(*share) == epoch0);
  CHECK(share->epoch() == 1);
  walk(all);
  CHECK(all.epoch() == 1);
  CHECK(walk(*all.share_of(2, 1)) == epoch1);
}

TEST_CASE("share: all shares have the seed that is drawn at the first use") {
  manual_seed(5);
  DataLoader all(count_up(10), {.batch_size = 10, .shuffle = true});
  const auto first = joined(walk(*all.share_of(2, 0)));
  manual_seed(6);
  CHECK(joined(walk(*all.share_of(2, 0))) == first);
}

TEST_CASE("share: a resumed iteration continues with the same samples") {
  DataLoader all(count_up(17), {.batch_size = 2, .shuffle = true, .seed = 2});
  const auto share = all.share_of(2, 1);
  const auto batches = walk(*share);
  share->set_epoch(0);
  auto it = share->begin();
  ++it;
  const auto place = share->state();
  const auto again = all.share_of(2, 1);
  again->load_state(place);
  CHECK(walk(*again) == std::vector<Numbers>(batches.begin() + 2, batches.end()));
  const auto other = all.share_of(3, 1);
  CHECK_THROWS_AS(other->load_state(place), StateError);
}

TEST_CASE("share: custom samplers and batch samplers") {
  DataLoader subset(count_up(10),
                    {.batch_size = 2, .sampler = std::make_shared<SubsetSampler>(Numbers{9, 7, 5, 3, 1})});
  CHECK(walk(*subset.share_of(2, 0)) == std::vector<Numbers>{{9, 5}, {1}});
  CHECK(walk(*subset.share_of(2, 1)) == std::vector<Numbers>{{7, 3}, {9}});
  CHECK(walk(*subset.share_of(2, 1, false)) == std::vector<Numbers>{{7, 3}});
  DataLoader growing(count_up(10), {.batch_sampler = std::make_shared<Growing>()});
  CHECK(walk(*growing.share_of(3, 0)) == std::vector<Numbers>{{0}, {6, 7, 8, 9}});
  CHECK(walk(*growing.share_of(3, 1)) == std::vector<Numbers>{{1, 2}, {0}});
  CHECK(walk(*growing.share_of(3, 1, false)) == std::vector<Numbers>{{1, 2}});
}

TEST_CASE("share: a combined loader divides its parts") {
  const auto a = std::make_shared<DataLoader>(count_up(6), DataLoaderOptions{.batch_size = 1});
  const auto b = std::make_shared<DataLoader>(count_up(4), DataLoaderOptions{.batch_size = 2});
  CombinedLoader both({a, b}, CombinedMode::min_size);
  const auto share = both.share_of(2, 1);
  REQUIRE(share->size() == 1);
  for (const Batch& batch : *share) {
    CHECK(batch[0].to_vector<int64_t>() == Numbers{1});
    CHECK(batch[1].to_vector<int64_t>() == Numbers{1, 3});
  }
}

TEST_CASE("share: a rank without samples has an empty epoch; an invalid rank is refused") {
  DataLoader all(count_up(2), {.batch_size = 4});
  const auto none = all.share_of(3, 2, /*pad=*/false);
  CHECK(none->size() == 0);
  CHECK(walk(*none).empty());
  CHECK(walk(*all.share_of(3, 2)) == std::vector<Numbers>{{0}});
  CHECK_THROWS_WITH_AS(all.share_of(2, 2), "[dataloader] rank 2 of 2 does not exist; ranks count from 0.", ValueError);
  CHECK_THROWS_AS(ShareSampler(std::make_shared<SequentialSampler>(3), 2, -1, true), ValueError);
}
