// Faults between ranks give one sentence on each of them, quickly.
#include <doctest/doctest.h>
#include <levin/autograd/autograd.h>

#include <atomic>
#include <thread>

#include "distributed/groups.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::kTransports;

namespace {

// Returns the errors of each rank over TCP, then in shared memory.
std::vector<std::string> errors_in_group(int n, const levin::test::GroupBody& body, Duration timeout = 60s) {
  std::vector<std::string> all;
  for (const std::string& transport : kTransports) {
    for (const std::string& e : levin::test::errors_in_group(n, body, timeout, transport)) all.push_back(e);
  }
  return all;
}

void check_says(const std::vector<std::string>& errors, const std::string& part) {
  for (const std::string& e : errors) {
    INFO(e);
    CHECK(e.find(part) != std::string::npos);
  }
}

// Calls f on every rank; all must report how the ranks differ.
std::vector<std::string> all_wait(int n, const std::function<Work(ProcessGroup&)>& f, Duration timeout = 60s) {
  return errors_in_group(
      n,
      [&](ProcessGroup& group) {
        group.barrier().wait();
        f(group).wait();
        group.barrier().wait();  // a rank whose own call succeeded learns of the failure here
      },
      timeout);
}

}  // namespace

TEST_CASE("ranks that call different operations") {
  const auto errors = all_wait(2, [](ProcessGroup& group) {
    return group.rank() == 0 ? group.all_reduce(ones({12})) : group.broadcast(ones({12}), 0);
  });
  for (const std::string& e : errors) {
    const bool named = e.find("all_reduce #2 (sum) of 12 float32") != std::string::npos &&
                       e.find("broadcast #2 of 12 float32 with root 0") != std::string::npos;
    CHECK_MESSAGE(named, e);
  }
}

TEST_CASE("all ranks report a difference in size, dtype, operation, root or order") {
  const auto differ = "All ranks must call the same operations in the same order";
  check_says(all_wait(3, [](ProcessGroup& g) { return g.all_reduce(ones({g.rank() == 1 ? 4 : 5})); }), differ);
  check_says(
      all_wait(3,
               [](ProcessGroup& g) { return g.all_reduce(ones({4}, {.dtype = g.rank() == 2 ? kFloat64 : kFloat32})); }),
      differ);
  check_says(
      all_wait(3,
               [](ProcessGroup& g) { return g.all_reduce(ones({4}), g.rank() == 0 ? ReduceOp::max : ReduceOp::sum); }),
      differ);
  check_says(all_wait(3, [](ProcessGroup& g) { return g.broadcast(ones({4}), g.rank() == 0 ? 1 : 0); }), differ);
  check_says(all_wait(3, [](ProcessGroup& g) { return g.rank() == 1 ? g.barrier() : g.all_reduce(ones({4})); }),
             differ);
}

TEST_CASE("differing ranks fail while another has not arrived") {
  std::atomic<int> told = 0;
  const auto errors = errors_in_group(3, [&](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 0) {
      for (int i = 0; told < 2 && i < 2000; ++i) std::this_thread::sleep_for(10ms);
      if (told < 2) throw std::runtime_error("no rank failed within 20 s");
      told -= 2;  // for the next transport
    }
    try {
      (group.rank() == 1 ? group.broadcast(ones({100'000}), 1) : group.all_reduce(ones({100'000}))).wait();
    } catch (const CollectiveMismatch&) {
      told += group.rank() != 0;
      throw;
    }
  });
  check_says(errors, "All ranks must call the same operations");
}

TEST_CASE("ranks differ with data in flight: data of the other call is not used") {
  const std::vector<std::pair<int64_t, int64_t>> sizes = {{5, 4}, {5, 300'000}, {300'000, 5}, {300'000, 200'000}};
  for (const auto& [first, second] : sizes) {
    const auto call = [&, first = first, second = second](ProcessGroup& group) {
      const Tensor t = full({group.rank() == 0 ? first : second}, static_cast<double>(7 + group.rank()));
      try {
        group.all_reduce(t).wait();
      } catch (const CollectiveMismatch&) {
        CHECK(t.eq(static_cast<double>(7 + group.rank())).all().item<bool>());
        throw;
      }
    };
    const auto errors = errors_in_group(2, call, 10s);
    check_says(errors, "all_reduce #1 (sum) of " + std::to_string(first) + " float32");
    check_says(errors, "all_reduce #1 (sum) of " + std::to_string(second) + " float32");
  }
}

TEST_CASE("messages of different sizes, and inconsistent splits") {
  check_says(all_wait(2, [](ProcessGroup& g) { return g.rank() == 0 ? g.send(ones({3}), 1) : g.recv(ones({4}), 0); }),
             "rank 0 calls send #0 of 3 float32, but rank 1 calls recv #0 of 4 float32");
  check_says(all_wait(2,
                      [](ProcessGroup& g) {
                        return g.all_to_all(empty({4}), ones({4}), {.output_splits = {2, 2}, .input_splits = {3, 1}});
                      }),
             "Do the splits match?");
}

TEST_CASE("a missing rank: the timeout ends the group on all ranks") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  std::atomic<int> calls = 0;  // three per transport
  const auto errors = errors_in_group(3, [&](ProcessGroup& group) {
    const auto store = std::make_shared<TcpStore>("127.0.0.1", table.port());
    PrefixStore signals(calls++ < 3 ? "tcp" : "shared", store);
    group.barrier().wait();
    group.set_timeout(300ms);
    if (group.rank() == 1) {
      signals.wait({"0", "2"});
      group.all_reduce(ones({4})).wait();  // too late, so it fails as well
    }
    const Work work = group.all_reduce(ones({4}));
    CHECK_THROWS_AS(work.wait(), CollectiveTimeout);
    signals.set(std::to_string(group.rank()), "");
    work.wait();
  });
  check_says(errors, "waited 0.3 s in all_reduce #2 (sum) of 4 float32: a rank is stalled or does not take part.");
}

TEST_CASE("an abort or an exception ends the group on all ranks with the first message") {
  const auto aborted = errors_in_group(3, [](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 1) group.abort("[matmul] inner sizes differ");
    while (true) group.all_reduce(ones({4})).wait();
  });
  check_says(aborted, "rank 1 failed: [matmul] inner sizes differ");

  const auto thrown = errors_in_group(3, [](ProcessGroup& group) {
    const auto own = group.new_group({0, 1, 2});
    group.barrier().wait();
    if (group.rank() == 2) throw ValueError("a bad batch");
    while (true) own->all_reduce(ones({4})).wait();
  });
  for (const std::size_t transport : {std::size_t{0}, std::size_t{3}}) {
    CHECK(thrown[transport + 2] == "a bad batch");
    check_says({thrown[transport], thrown[transport + 1]}, "rank 2 failed: an exception ended the part of rank 2");
  }
}

TEST_CASE("a rank that leaves early ends the wait of the others") {
  std::atomic<int> calls = 0;  // three per transport
  std::atomic<bool> through[2] = {false, false};
  const auto errors = errors_in_group(3, [&](ProcessGroup& group) {
    std::atomic<bool>& last_is_through = through[calls++ / 3];
    group.barrier().wait();
    if (group.rank() == 2) last_is_through = true;
    while (!last_is_through) std::this_thread::sleep_for(1ms);  // the others' calls differ, which ends the group
    if (group.rank() == 0) group.barrier().wait();
    if (group.rank() == 1) group.all_reduce(ones({4})).wait();
  });
  for (std::size_t i = 0; i < errors.size(); ++i) CHECK((errors[i] == "") == (i % 3 == 2));
}

TEST_CASE("every later call on an ended group fails; groups without the failed rank stay usable") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  std::atomic<int> calls = 0;
  const auto errors = errors_in_group(4, [&](ProcessGroup& group) {
    const auto store = std::make_shared<TcpStore>("127.0.0.1", table.port());
    PrefixStore signals(calls++ < 4 ? "tcp" : "shared", store);
    const auto low = group.new_group({0, 1}), high = group.new_group({2, 3});
    signals.set(std::to_string(group.rank()), "");
    signals.wait({"0", "1", "2", "3"});
    if (group.rank() == 3) high->abort("no more");
    if (high) {
      for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(high->barrier().wait(), RankLost);
    } else {
      for (int i = 0; i < 3; ++i) low->barrier().wait();
    }
    signals.set("done " + std::to_string(group.rank()), "");
    if (group.rank() == 0) signals.wait({"done 2", "done 3"});  // it relays the others' reports, so it leaves last
  });
  for (const std::string& e : errors) CHECK(e == "");
}
