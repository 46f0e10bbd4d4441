// Collectives compared with results computed by hand.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

#include <atomic>
#include <mutex>

#include "distributed/groups.h"
#include "distributed/groups/values.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using namespace levin::test::values;
using levin::test::kTransports;

namespace {

// Runs on both transports.
void in_group(int n, const levin::test::GroupBody& body) {
  for (const std::string& transport : kTransports) levin::test::in_group(n, body, transport);
}

}  // namespace

TEST_CASE("all_reduce: every operation and dtype") {
  in_group(3, [&](ProcessGroup& group) {
    for (const ReduceOp op : kOps) {
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      for (const DType dtype : kTypes) {
        if (op == ReduceOp::avg && !is_floating(dtype)) continue;
        tensors.push_back(filled(group.rank(), 13, dtype));
        works.push_back(group.all_reduce(tensors.back(), op));
      }
      for (std::size_t i = 0; i < works.size(); ++i) {
        works[i].wait();
        const DType dtype = tensors[i].dtype();
        const double rounding = dtype == kBFloat16 ? 8e-3 : dtype == kFloat16 ? 1e-3 : 1e-6;
        check_equal(
            tensors[i], [&](int64_t k) { return reduced(op, 3, k); }, op == ReduceOp::avg ? rounding : 0);
      }
    }
  });
}

TEST_CASE("all_reduce, reduce, reduce_scatter on 2, 3 and 4 ranks") {
  for (const int n : {2, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      CHECK(group.size() == n);
      for (const ReduceOp op : {ReduceOp::avg, ReduceOp::product}) {
        const auto expected = [&](int64_t i) { return reduced(op, n, i); };
        const Tensor a = filled(group.rank(), 13, kFloat32), b = filled(group.rank(), 13, kFloat32);
        group.all_reduce(a, op).wait();
        check_equal(a, expected, 1e-6);
        group.reduce(b, n - 1, op).wait();
        if (group.rank() == n - 1) check_equal(b, expected, 1e-6);
        const Tensor in = filled(group.rank(), 5 * n, kFloat32), out = empty({5});
        group.reduce_scatter(out, in, op).wait();
        check_equal(
            out, [&](int64_t i) { return expected(5 * group.rank() + i); }, 1e-6);
        check_equal(in, [&](int64_t i) { return value(group.rank(), i); });
      }
    });
  }
}

TEST_CASE("all_reduce: booleans, no elements, fewer elements than ranks, many segments") {
  in_group(3, [](ProcessGroup& group) {
    const auto flags = [&] { return from_data({group.rank() == 0, true, false}, {3}); };
    for (const auto& [op, expected] : {std::pair{ReduceOp::sum, std::vector<double>{1, 1, 0}},
                                       {ReduceOp::max, {1, 1, 0}},
                                       {ReduceOp::product, {0, 1, 0}},
                                       {ReduceOp::min, {0, 1, 0}}}) {
      const Tensor t = flags();
      group.all_reduce(t, op).wait();
      CHECK(t.to_vector<double>() == expected);
    }
    group.all_reduce(empty({0})).wait();
    const Tensor two = filled(group.rank(), 2, kFloat32);
    group.all_reduce(two).wait();
    check_equal(two, [](int64_t i) { return reduced(ReduceOp::sum, 3, i); });
    const Tensor large = filled(group.rank(), 500'009, kFloat32);  // 667 KB a part: three segments
    group.all_reduce(large).wait();
    check_equal(large, [](int64_t i) { return reduced(ReduceOp::sum, 3, i); });
  });
}

TEST_CASE("all_reduce: all ranks get the same bits") {
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  in_group(4, [&](ProcessGroup& group) {
    Generator rng(static_cast<std::uint64_t>(group.rank()));
    const Tensor t = randn({1001}, {.generator = &rng});
    group.all_reduce(t, ReduceOp::avg).wait();
    const std::lock_guard lock(mutex);
    results.push_back(t.to_vector<float>());
  });
  for (const auto& r : results) CHECK(r == results[0]);
}

TEST_CASE("broadcast, all_gather, gather, scatter: every root") {
  for (const int n : {2, 3, 4}) {
    in_group(n, [&](ProcessGroup& group) {
      const int rank = group.rank();
      const Tensor gathered = empty({n, 3}, {.dtype = kInt64});
      group.all_gather(gathered, filled(rank, 3, kInt64)).wait();
      check_equal(gathered, [](int64_t i) { return value(static_cast<int>(i / 3), i % 3); });
      for (int root = 0; root < n; ++root) {
        const Tensor t = filled(rank, 100'003, kFloat32);
        group.broadcast(t, root).wait();
        check_equal(t, [&](int64_t i) { return value(root, i); });
        const Tensor all = rank == root ? empty({n * 3}) : Tensor();
        group.gather(all, filled(rank, 3, kFloat32), root).wait();
        if (rank == root) check_equal(all, [](int64_t i) { return value(static_cast<int>(i / 3), i % 3); });
        const Tensor mine = empty({3});
        group.scatter(mine, rank == root ? filled(root, 3 * n, kFloat32) : Tensor(), root).wait();
        check_equal(mine, [&](int64_t i) { return value(root, 3 * rank + i); });
      }
    });
  }
}

TEST_CASE("all_to_all: equal parts and splits, some of them empty") {
  in_group(3, [](ProcessGroup& group) {
    const int rank = group.rank();
    const Tensor out = empty({6});
    group.all_to_all(out, filled(rank, 6, kFloat32)).wait();
    check_equal(out, [&](int64_t i) { return value(static_cast<int>(i / 2), 2 * rank + i % 2); });
    // Rank r sends r elements to each rank.
    const Tensor some = empty({3});
    group
        .all_to_all(some, filled(rank, 3 * rank, kFloat32),
                    {.output_splits = {0, 1, 2}, .input_splits = {rank, rank, rank}})
        .wait();
    check_equal(some, [&](int64_t i) { return i == 0 ? value(1, rank) : value(2, 2 * rank + i - 1); });
  });
}

TEST_CASE("send and recv: both send first, tags, order") {
  in_group(3, [](ProcessGroup& group) {
    const int rank = group.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    const Tensor out = filled(rank, 300'000, kFloat32), in = empty({300'000});
    const Work sent = group.send(out, next), received = group.recv(in, before);
    sent.wait();
    received.wait();
    check_equal(in, [&](int64_t i) { return value(before, i); });
    const Tensor a = empty({1}), b = empty({1}), c = empty({1});
    const std::vector<Work> works = {group.send(tensor({1.0f}), next, 7),
                                     group.send(tensor({2.0f}), next, 7),
                                     group.send(tensor({3.0f}), next, 8),
                                     group.recv(a, before, 7),
                                     group.recv(b, before, 7),
                                     group.recv(c, before, 8)};
    for (const Work& w : works) w.wait();
    CHECK(a.item<float>() == 1);
    CHECK(b.item<float>() == 2);
    CHECK(c.item<float>() == 3);
  });
}

TEST_CASE("send and recv: consecutive messages of sizes that do not divide the buffer") {
  in_group(2, [](ProcessGroup& group) {
    for (int i = 0; i < 12; ++i) {
      const Tensor sent = add(arange(5'000 + i), i), got = empty({5'000 + i}, {.dtype = kInt64});
      group.rank() == 0 ? group.send(sent, 1).wait() : group.recv(got, 0).wait();
      if (group.rank() == 1) CHECK(got.eq(sent).all().item<bool>());
    }
  });
}

TEST_CASE("works: they start in order, may be waited for in any order, and bump the version") {
  in_group(2, [](ProcessGroup& group) {
    std::vector<Tensor> tensors;
    std::vector<Work> works;
    for (int i = 0; i < 20; ++i) {
      tensors.push_back(filled(group.rank(), 100 + i, kFloat32));
      const auto version = tensors.back().version();
      works.push_back(group.all_reduce(tensors.back()));
      CHECK(tensors.back().version() > version);
    }
    for (std::size_t i = works.size(); i-- > 0;) {
      works[i].wait(60s);
      CHECK(works[i].is_completed());
      CHECK(works[i].exception() == nullptr);
      check_equal(tensors[i], [](int64_t k) { return reduced(ReduceOp::sum, 2, k); });
    }
  });
}

TEST_CASE("work: a wait with its own timeout, after which the operation continues") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  std::atomic<int> calls = 0;  // two per transport
  in_group(2, [&](ProcessGroup& group) {
    const auto store = std::make_shared<TcpStore>("127.0.0.1", table.port());
    PrefixStore signals(calls++ < 2 ? "tcp" : "shared", store);
    if (group.rank() == 1) signals.wait({"go"});
    const Work work = group.barrier();
    if (group.rank() == 0) {
      CHECK_THROWS_WITH_AS(work.wait(1ms), "[barrier #1] not done after 0.001 s of waiting.", CollectiveTimeout);
      CHECK_FALSE(work.is_completed());
      signals.set("go", "");
    }
    work.wait();
  });
}

TEST_CASE("new_group: some ranks, another order, groups at the same time") {
  in_group(4, [](ProcessGroup& group) {
    const int rank = group.rank();
    const auto even = group.new_group({2, 0}), odd = group.new_group({1, 3}), again = group.new_group({2, 0});
    CHECK((even == nullptr) == (rank % 2 == 1));
    CHECK((odd == nullptr) == (rank % 2 == 0));
    ProcessGroup& own = rank % 2 == 0 ? *even : *odd;
    CHECK(own.size() == 2);
    CHECK(own.ranks() == (rank % 2 == 0 ? std::vector<int>{2, 0} : std::vector<int>{1, 3}));
    CHECK(own.rank() == (rank == 2 || rank == 1 ? 0 : 1));
    const Tensor t = filled(rank, 5, kFloat32);
    const Tensor all = filled(rank, 5, kFloat32);
    const Work wide = group.all_reduce(all);
    own.all_reduce(t).wait();
    wide.wait();
    check_equal(t, [&](int64_t i) { return value(rank % 2, i) + value(rank % 2 + 2, i); });
    check_equal(all, [](int64_t i) { return reduced(ReduceOp::sum, 4, i); });
    const Tensor first = filled(rank, 1, kFloat32);
    own.broadcast(first, 0).wait();
    CHECK(first.item<double>() == value(own.ranks()[0], 0));
    if (again) again->barrier().wait();
    const auto alone = group.new_group({3});
    if (alone) CHECK(alone->name() == "single");
    group.barrier().wait();
  });
}

TEST_CASE("new_group: equal subgroups of two groups do not interfere") {
  in_group(3, [](ProcessGroup& group) {
    const auto front = group.new_group({0, 1, 2}), pair = group.new_group({0, 1}), again = front->new_group({0, 1});
    if (pair) {
      const Tensor a = filled(group.rank(), 5, kFloat32), b = filled(group.rank(), 5, kFloat32);
      const Work works[] = {pair->all_reduce(a), again->all_reduce(b, ReduceOp::max)};
      for (const Work& w : works) w.wait();
      check_equal(a, [](int64_t i) { return reduced(ReduceOp::sum, 2, i); });
      check_equal(b, [](int64_t i) { return reduced(ReduceOp::max, 2, i); });
    }
    group.barrier().wait();
  });
}

TEST_CASE("single: one rank, a real group") {
  const auto group = make_process_group("single");
  CHECK(group->name() == "single");
  CHECK(group->size() == 1);
  const Tensor t = filled(0, 4, kFloat32), out = empty({4});
  for (const ReduceOp op : kOps) group->all_reduce(t, op).wait();
  group->all_gather(out, t).wait();
  CHECK(out.to_vector<double>() == t.to_vector<double>());
  group->all_to_all(out.zero_(), t).wait();
  CHECK(out.to_vector<double>() == t.to_vector<double>());
  group->broadcast(t, 0).wait();
  group->barrier().wait();
  CHECK(group->new_group({0})->size() == 1);
  CHECK(make_process_group("gloo")->name() == "single");
  group->abort("the disk is full");
  CHECK_THROWS_WITH_AS(group->barrier().wait(), "[barrier] rank 0 failed: the disk is full", RankLost);
}

TEST_CASE("invalid arguments are refused") {
  const auto group = make_process_group("single");
  const Tensor t = empty({4});
  CHECK_THROWS_AS((void)group->all_reduce(Tensor()), ValueError);
  CHECK_THROWS_AS((void)group->all_reduce(empty({4, 4}).t()), ValueError);
  CHECK_THROWS_AS((void)group->all_reduce(empty({4}, {.dtype = kInt32}), ReduceOp::avg), DTypeError);
  CHECK_THROWS_AS((void)group->broadcast(t, 1), ValueError);
  CHECK_THROWS_AS((void)group->reduce(t, -1), ValueError);
  CHECK_THROWS_AS((void)group->all_gather(empty({8}), t), ShapeError);
  CHECK_THROWS_AS((void)group->reduce_scatter(t, empty({5})), ShapeError);
  CHECK_THROWS_AS((void)group->all_gather(empty({4}, {.dtype = kFloat64}), t), DTypeError);
  CHECK_THROWS_AS((void)group->all_to_all(t, t, {.input_splits = {3}}), ShapeError);
  CHECK_THROWS_AS((void)group->send(t, 0), ValueError);
  CHECK_THROWS_AS((void)group->recv(t, 0), ValueError);
  CHECK_THROWS_AS(group->new_group({0, 0}), ValueError);
  CHECK_THROWS_AS(group->new_group({}), ValueError);
  CHECK_THROWS_AS(make_process_group("mpi"), ValueError);
  CHECK_THROWS_WITH_AS(make_process_group("nccl"),
                       "[make_process_group] this build has no CUDA, so there is no backend \"nccl\". Choose gloo, or "
                       "build with -DLEVIN_CUDA=ON (or EMULATE, to run the kernels on the cpu).",
                       ValueError);
  CHECK_THROWS_AS(make_process_group("single", {.world_size = 2}), ValueError);
  CHECK_THROWS_AS(make_process_group("gloo", {.world_size = 2}), ValueError);
  CHECK_THROWS_AS(make_process_group("gloo", {.rank = 2, .world_size = 2}), ValueError);
}
