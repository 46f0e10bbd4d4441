// Faults between ranks of NCCL give one sentence on each of them, quickly.
#include <chrono>

#include "nccl/groups.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;
using namespace std::chrono_literals;

namespace {

[[maybe_unused]] const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

Tensor there(int64_t n, DType dtype = kFloat32) { return ones({n}, {.dtype = dtype, .device = own_device()}); }

void check_says(const std::vector<std::string>& errors, const std::string& part) {
  for (const std::string& e : errors) CHECK_MESSAGE(e.find(part) != std::string::npos, e, " does not say: ", part);
}

/// Every rank calls f, then waits for the others until a fault shows. Calls are compared beside the work, so the fault
/// may be thrown by a later call.
std::vector<std::string> all_wait(int n, const std::function<Work(ProcessGroup&)>& f) {
  return errors_in_nccl_group(
      n,
      [&](ProcessGroup& group) {
        group.barrier().wait();
        f(group).wait();
        const auto until = std::chrono::steady_clock::now() + 10s;
        do {
          group.barrier().wait();
        } while (std::chrono::steady_clock::now() < until);
      },
      "nccl", 30s);
}

}  // namespace

TEST_CASE("nccl faults: ranks that call different operations report both") {
  const auto errors = all_wait(2, [](ProcessGroup& group) {
    return group.rank() == 0 ? group.all_reduce(there(12)) : group.broadcast(there(12), 0);
  });
  check_says(errors, "all_reduce #2 (sum) of 12 float32");
  check_says(errors, "broadcast #2 of 12 float32 with root 0");
}

TEST_CASE("nccl faults: ranks that differ in size, dtype, operation, root or order") {
  const auto differ = "All ranks must call the same operations in the same order";
  check_says(all_wait(3, [](ProcessGroup& g) { return g.all_reduce(there(g.rank() == 1 ? 4 : 5)); }), differ);
  check_says(all_wait(3, [](ProcessGroup& g) { return g.all_reduce(there(4, g.rank() == 2 ? kFloat64 : kFloat32)); }),
             differ);
  check_says(
      all_wait(3,
               [](ProcessGroup& g) { return g.all_reduce(there(4), g.rank() == 0 ? ReduceOp::max : ReduceOp::sum); }),
      differ);
  check_says(all_wait(3, [](ProcessGroup& g) { return g.broadcast(there(4), g.rank() == 0 ? 1 : 0); }), differ);
  check_says(all_wait(3, [](ProcessGroup& g) { return g.rank() == 1 ? g.barrier() : g.all_reduce(there(4)); }), differ);
}

TEST_CASE("nccl faults: messages of different sizes, and inconsistent splits") {
  check_says(all_wait(2, [](ProcessGroup& g) { return g.rank() == 0 ? g.send(there(3), 1) : g.recv(there(4), 0); }),
             "rank 0 calls send #0 of 3 float32, but rank 1 calls recv #0 of 4 float32");
  check_says(all_wait(2,
                      [](ProcessGroup& g) {
                        return g.all_to_all(there(4), there(4), {.output_splits = {2, 2}, .input_splits = {3, 1}});
                      }),
             "Do the splits match?");
}

TEST_CASE("nccl faults: a missing rank ends the group at the timeout, on all ranks and both devices") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  const auto errors = errors_in_nccl_group(
      3,
      [&](ProcessGroup& group) {
        TcpStore signals("127.0.0.1", table.port());
        group.barrier().wait();
        group.set_timeout(300ms);
        if (group.rank() == 1) {
          signals.wait({"0", "2"});
          group.all_reduce(there(4)).wait(10s);  // too late, so it fails as well
        }
        const Tensor t = there(4);
        const Work work = group.all_reduce(t);
        work.wait();
        t.to_vector<double>();  // the host waits for the device, whose work is aborted
        CHECK_THROWS_AS(work.wait(10s), CollectiveTimeout);
        CHECK_THROWS_AS(group.barrier().wait(), CollectiveTimeout);
        signals.set(std::to_string(group.rank()), "");
        work.wait();
      },
      kBoth);
  check_says(errors, "waited 0.3 s in all_reduce #1 (sum) of 4 float32: a rank is stalled or does not take part.");
}

TEST_CASE("nccl faults: a message that is never sent ends the group at the timeout") {
  const auto errors = errors_in_nccl_group(2, [](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 0) group.set_timeout(300ms);
    if (group.rank() == 0) group.recv(there(4), 1).wait();
    group.barrier().wait();
  });
  check_says(errors, "waited 0.3 s in recv #0 of 4 float32");
}

TEST_CASE("nccl faults: an abort or an exception ends the group on all ranks with its message") {
  for (const std::string backend : {"nccl", kBoth}) {
    const auto aborted = errors_in_nccl_group(
        3,
        [](ProcessGroup& group) {
          if (group.rank() == 1) group.abort("[matmul] inner sizes differ");
          while (true) group.all_reduce(there(4)).wait(20s);
        },
        backend);
    check_says(aborted, "rank 1 failed: [matmul] inner sizes differ");
  }
  const auto thrown = errors_in_nccl_group(3, [](ProcessGroup& group) {
    const auto own = group.new_group({0, 1, 2});
    group.barrier().wait();
    if (group.rank() == 2) throw ValueError("a bad batch");
    while (true) own->all_reduce(there(4)).wait(20s);
  });
  CHECK(thrown[2] == "a bad batch");
  check_says({thrown[0], thrown[1]}, "rank 2 failed: an exception ended the part of rank 2");
}

TEST_CASE("nccl faults: a rank that leaves early ends the wait of the others") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  const auto errors = errors_in_nccl_group(3, [&](ProcessGroup& group) {
    TcpStore signals("127.0.0.1", table.port());
    group.barrier().wait();
    if (group.rank() == 2) return signals.set("leaves", "");
    signals.wait({"leaves"});
    group.all_reduce(there(4)).wait(20s);
  });
  for (std::size_t i = 0; i < errors.size(); ++i) CHECK((errors[i] == "") == (i == 2));
}

TEST_CASE("nccl faults: groups without the failed rank stay usable") {
  TcpStore table("127.0.0.1", 0, {.server = true});
  const auto errors = errors_in_nccl_group(4, [&](ProcessGroup& group) {
    TcpStore signals("127.0.0.1", table.port());
    const auto low = group.new_group({0, 1}), high = group.new_group({2, 3});
    signals.set(std::to_string(group.rank()), "");
    signals.wait({"0", "1", "2", "3"});
    if (group.rank() == 3) high->abort("no more");
    if (high) {
      for (int i = 0; i < 2; ++i) CHECK_THROWS_AS(high->barrier().wait(), RankLost);
    } else {
      for (int i = 0; i < 3; ++i) low->barrier().wait();
    }
  });
  for (const std::string& e : errors) CHECK(e == "");
}
