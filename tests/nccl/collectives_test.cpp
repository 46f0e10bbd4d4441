// Collectives over NCCL compared with results computed by hand.
#include <atomic>
#include <mutex>

#include "distributed/groups/values.h"
#include "nccl/groups.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;
using namespace levin::test::values;
using namespace std::chrono_literals;

namespace {

// Read at the first use of a device.
[[maybe_unused]] const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

Tensor own(int rank, int64_t n, DType dtype) { return filled(rank, n, dtype).to(own_device()); }
Tensor room(int64_t n, DType dtype = kFloat32) { return empty({n}, {.dtype = dtype, .device = own_device()}); }

}  // namespace

TEST_CASE("nccl all_reduce: every operation and dtype") {
  in_nccl_group(3, [](ProcessGroup& group) {
    CHECK(group.name() == "nccl");
    for (const ReduceOp op : kOps) {
      std::vector<Tensor> tensors;
      std::vector<Work> works;
      for (const DType dtype : kTypes) {
        if (dtype == kInt16 || (op == ReduceOp::avg && !is_floating(dtype))) continue;
        tensors.push_back(own(group.rank(), 13, dtype));
        works.push_back(group.all_reduce(tensors.back(), op));
      }
      for (std::size_t i = 0; i < works.size(); ++i) {
        works[i].wait();
        const DType dtype = tensors[i].dtype();
        const double rounding = dtype == kBFloat16 ? 2e-2 : dtype == kFloat16 ? 2e-3 : 1e-6;
        check_equal(
            tensors[i], [&](int64_t k) { return reduced(op, 3, k); }, op == ReduceOp::avg ? rounding : 0);
      }
    }
  });
}

TEST_CASE("nccl all_reduce, reduce, reduce_scatter on 1, 2, 3 and 4 ranks") {
  for (const int n : {1, 2, 3, 4}) {
    in_nccl_group(n, [&](ProcessGroup& group) {
      for (const ReduceOp op : {ReduceOp::avg, ReduceOp::product}) {
        const auto expected = [&](int64_t i) { return reduced(op, n, i); };
        const Tensor a = own(group.rank(), 5000, kFloat32), b = own(group.rank(), 13, kFloat32);
        group.all_reduce(a, op).wait();
        check_equal(a, expected, 1e-6);
        group.reduce(b, n - 1, op).wait();
        if (group.rank() == n - 1) check_equal(b, expected, 1e-6);
        const Tensor in = own(group.rank(), 5 * n, kFloat32), out = room(5);
        group.reduce_scatter(out, in, op).wait();
        check_equal(
            out, [&](int64_t i) { return expected(5 * group.rank() + i); }, 1e-6);
        check_equal(in, [&](int64_t i) { return value(group.rank(), i); });
      }
    });
  }
}

TEST_CASE("nccl all_reduce: booleans, no elements; int16 is refused") {
  in_nccl_group(3, [](ProcessGroup& group) {
    for (const auto& [op, expected] : {std::pair{ReduceOp::sum, std::vector<double>{1, 1, 0}},
                                       {ReduceOp::max, {1, 1, 0}},
                                       {ReduceOp::product, {0, 1, 0}},
                                       {ReduceOp::min, {0, 1, 0}}}) {
      const Tensor t = from_data({group.rank() == 0, true, false}, {3}).to(own_device());
      group.all_reduce(t, op).wait();
      CHECK(t.to_vector<double>() == expected);
    }
    group.all_reduce(room(0)).wait();
    CHECK_THROWS_WITH_AS((void)group.all_reduce(room(3, kInt16)),
                         "[all_reduce] NCCL does not reduce int16; reduce a copy of type int32.", DTypeError);
  });
}

TEST_CASE("nccl broadcast, all_gather, gather, scatter: every root, types that NCCL lacks") {
  for (const int n : {2, 3, 4}) {
    in_nccl_group(n, [&](ProcessGroup& group) {
      const int rank = group.rank();
      for (const DType dtype : {kInt64, kInt16, kFloat16}) {
        const Tensor all = room(3 * n, dtype);
        group.all_gather(all, own(rank, 3, dtype)).wait();
        check_equal(all, [](int64_t i) { return value(static_cast<int>(i / 3), i % 3); });
      }
      const Tensor flags = room(n, kBool);
      group.all_gather(flags, from_data({rank == 1}, {1}).to(own_device())).wait();
      check_equal(flags, [](int64_t i) { return i == 1 ? 1.0 : 0.0; });
      for (int root = 0; root < n; ++root) {
        for (const DType dtype : {kFloat32, kInt16}) {
          const Tensor t = own(rank, 10'003, dtype);
          group.broadcast(t, root).wait();
          check_equal(t, [&](int64_t i) { return value(root, i); });
          const Tensor all = rank == root ? room(n * 3, dtype) : Tensor();
          group.gather(all, own(rank, 3, dtype), root).wait();
          if (rank == root) check_equal(all, [](int64_t i) { return value(static_cast<int>(i / 3), i % 3); });
          const Tensor mine = room(3, dtype);
          group.scatter(mine, rank == root ? own(root, 3 * n, dtype) : Tensor(), root).wait();
          check_equal(mine, [&](int64_t i) { return value(root, 3 * rank + i); });
        }
      }
    });
  }
}

TEST_CASE("nccl all_to_all: equal parts and splits, some of them empty") {
  in_nccl_group(3, [](ProcessGroup& group) {
    const int rank = group.rank();
    const Tensor out = room(6);
    group.all_to_all(out, own(rank, 6, kFloat32)).wait();
    check_equal(out, [&](int64_t i) { return value(static_cast<int>(i / 2), 2 * rank + i % 2); });
    // Rank r sends r elements to each rank.
    const Tensor some = room(3);
    group
        .all_to_all(some, own(rank, 3 * rank, kFloat32),
                    {.output_splits = {0, 1, 2}, .input_splits = {rank, rank, rank}})
        .wait();
    check_equal(some, [&](int64_t i) { return i == 0 ? value(1, rank) : value(2, 2 * rank + i - 1); });
  });
}

TEST_CASE("nccl send and recv: both send first, in order, several at a time") {
  in_nccl_group(3, [](ProcessGroup& group) {
    const int rank = group.rank(), next = (rank + 1) % 3, before = (rank + 2) % 3;
    for (int round = 0; round < 2; ++round) {
      const Tensor out = own(rank, 100'000, kFloat32), in = room(100'000);
      const Work sent = group.send(out, next), received = group.recv(in, before);
      sent.wait();
      received.wait();
      check_equal(in, [&](int64_t i) { return value(before, i); });
    }
    const Tensor first = room(2, kInt16), second = room(3);
    const std::vector<Work> works = {group.send(own(rank, 2, kInt16), next), group.send(own(rank, 3, kFloat32), next),
                                     group.recv(first, before), group.recv(second, before)};
    for (const Work& w : works) w.wait();
    check_equal(first, [&](int64_t i) { return value(before, i); });
    check_equal(second, [&](int64_t i) { return value(before, i); });
  });
}

TEST_CASE("nccl works: the current stream waits, the host does not") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  in_nccl_group(2, [&](ProcessGroup& group) {
    TcpStore signals("127.0.0.1", table.port());
    const Tensor t = own(group.rank(), 1000, kFloat32), late = own(group.rank(), 10, kFloat32);
    const auto version = t.version();
    if (group.rank() == 1) signals.wait({"rank 0 has waited"});
    const Work work = group.all_reduce(t);
    CHECK(t.version() > version);
    if (group.rank() == 0) {
      work.wait();  // rank 1 has not made the call yet
      CHECK_FALSE(work.is_completed());
      CHECK_THROWS_WITH_AS(work.wait(1ms), "[all_reduce #1] not done after 0.001 s of waiting.", CollectiveTimeout);
      signals.set("rank 0 has waited", "");
    }
    work.wait();
    const Tensor doubled = mul(t, 2.0);
    check_equal(doubled, [](int64_t i) { return 2 * reduced(ReduceOp::sum, 2, i); });
    work.wait(30s);
    CHECK(work.is_completed());
    CHECK(work.exception() == nullptr);
    group.all_reduce(late).wait();
    check_equal(late, [](int64_t i) { return reduced(ReduceOp::sum, 2, i); });
  });
}

TEST_CASE("nccl works: input of another stream is waited for, and a freed tensor's memory is not reused too early") {
  in_nccl_group(2, [](ProcessGroup& group) {
    const int device = cuda::current_device();
    const cuda::Stream other(device);
    for (int i = 0; i < 10; ++i) {
      Tensor result;
      {
        const cuda::StreamGuard guard(other);
        Tensor t = mul(own(group.rank(), 5000, kFloat32), 3.0);
        const Work work = group.all_reduce(t);
        result = room(5000);
        work.wait();
        result.copy_(t);
        t = Tensor();
        zeros({5000}, {.device = own_device()});
      }
      cuda::current_stream(device).wait_stream(other);
      check_equal(result, [](int64_t k) { return 3 * reduced(ReduceOp::sum, 2, k); });
    }
  });
}

TEST_CASE("nccl barrier: the host waits for all ranks") {
  std::atomic<int> arrived = 0;
  in_nccl_group(3, [&](ProcessGroup& group) {
    for (int round = 1; round <= 3; ++round) {
      if (group.rank() == round % 3) std::this_thread::sleep_for(20ms);
      ++arrived;
      group.barrier().wait();
      CHECK(arrived >= 3 * round);
    }
  });
}

TEST_CASE("nccl new_group: some ranks, another order, groups at the same time") {
  in_nccl_group(4, [](ProcessGroup& group) {
    const int rank = group.rank();
    const auto even = group.new_group({2, 0}), odd = group.new_group({1, 3});
    CHECK((even == nullptr) == (rank % 2 == 1));
    ProcessGroup& mine = rank % 2 == 0 ? *even : *odd;
    CHECK(mine.name() == "nccl");
    CHECK(mine.ranks() == (rank % 2 == 0 ? std::vector<int>{2, 0} : std::vector<int>{1, 3}));
    const Tensor t = own(rank, 5, kFloat32), all = own(rank, 5, kFloat32);
    const Work wide = group.all_reduce(all);
    mine.all_reduce(t).wait();
    wide.wait();
    check_equal(t, [&](int64_t i) { return value(rank % 2, i) + value(rank % 2 + 2, i); });
    check_equal(all, [](int64_t i) { return reduced(ReduceOp::sum, 4, i); });
    const Tensor first = own(rank, 1, kFloat32);
    mine.broadcast(first, 0).wait();
    CHECK(first.item<double>() == value(mine.ranks()[0], 0));
    const auto inner = mine.new_group({1, 0});
    inner->barrier().wait();
    if (const auto alone = group.new_group({3})) {
      const Tensor x = own(3, 5, kFloat32);
      alone->all_reduce(x, ReduceOp::avg).wait();
      check_equal(x, [](int64_t i) { return value(3, i); });
    }
    group.barrier().wait();
  });
}

TEST_CASE("nccl with gloo: the tensor's device selects the backend") {
  in_nccl_group(
      3,
      [](ProcessGroup& group) {
        CHECK(group.name() == kBoth);
        const int rank = group.rank();
        const Tensor there = own(rank, 7, kFloat32), here = filled(rank, 7, kInt16);
        const Work a = group.all_reduce(there), b = group.all_reduce(here);
        b.wait();
        a.wait();
        check_equal(there, [](int64_t i) { return reduced(ReduceOp::sum, 3, i); });
        check_equal(here, [](int64_t i) { return reduced(ReduceOp::sum, 3, i); });
        const Tensor all = empty({6});
        CHECK_THROWS_AS((void)group.all_gather(all, own(rank, 2, kFloat32)), DeviceError);
        if (const auto pair = group.new_group({2, 1})) {
          CHECK(pair->name() == kBoth);
          pair->all_reduce(there).wait();
          pair->all_reduce(here).wait();
          check_equal(there, [](int64_t i) { return 2 * reduced(ReduceOp::sum, 3, i); });
        }
        group.barrier().wait();
      },
      kBoth);
}

TEST_CASE("nccl: reading or creating a tensor waits for its stream, not for work that other ranks have not started") {
  in_nccl_group(
      2,
      [](ProcessGroup& group) {
        const Tensor sum = own(group.rank(), 7, kFloat32), other = ones({3}, {.device = own_device()});
        Work work;
        if (group.rank() == 0) work = group.all_reduce(sum);
        CHECK(add(other, 1.0).to_vector<float>() == std::vector<float>{2, 2, 2});
        CHECK(other.sum().item<float>() == 3);
        CHECK(other.cpu().to_vector<float>()[2] == 1);
        CHECK(from_data({4.0f}, {1}, {.device = own_device()}).item<float>() == 4);
        group.all_reduce(ones({1})).wait();  // on the host
        if (group.rank() == 1) work = group.all_reduce(sum);
        work.wait();
        check_equal(sum, [](int64_t i) { return reduced(ReduceOp::sum, 2, i); });
      },
      kBoth);
}

TEST_CASE("nccl: a single rank has its own communicator") {
  const auto group = make_process_group("nccl", {.device = 1});
  CHECK(group->name() == "nccl");
  const Tensor t = filled(0, 4, kFloat32).to(cuda(1)), out = empty({4}, {.device = cuda(1)});
  for (const ReduceOp op : kOps) group->all_reduce(t, op).wait();
  check_equal(t, [](int64_t i) { return value(0, i); });
  group->all_to_all(out, t).wait();
  check_equal(out, [](int64_t i) { return value(0, i); });
  group->barrier().wait();
  CHECK_THROWS_WITH_AS((void)group->all_reduce(ones({4}, {.device = cuda(0)})),
                       "[all_reduce] the tensor is on cuda:0, but this rank of the nccl group uses cuda:1. Move it "
                       "there, or make the group \"cpu:gloo,cuda:nccl\" for tensors of both.",
                       DeviceError);
  CHECK_THROWS_AS((void)group->all_reduce(ones({4})), DeviceError);
  CHECK_THROWS_AS(make_process_group("nccl", {.device = 7}), DeviceError);
  CHECK_THROWS_AS(make_process_group("nccl", {.nccl_algo = "star"}), ValueError);
}
