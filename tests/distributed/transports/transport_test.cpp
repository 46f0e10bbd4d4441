// Shared memory compared with TCP: the same bits, chosen if possible, and no busy waiting.
#include <levin/autograd/autograd.h>
#include <sys/resource.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "distributed/groups.h"
#include "distributed/ranks.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::bytes_of;
using levin::test::errors_on_threads;
using levin::test::in_group;
using levin::test::kTransports;
using levin::test::run_on_ranks;

namespace {

bool memory_is_mapped() {
  std::ifstream maps("/proc/self/maps");
  std::stringstream text;
  text << maps.rdbuf();
  return text.str().find("memfd:levin") != std::string::npos;
}

// Requests a transport per rank and returns the ranks' errors.
std::vector<std::string> meet(const std::vector<std::string>& wishes, const std::function<void(ProcessGroup&)>& body) {
  const TcpStore table("127.0.0.1", 0, {.server = true});
  const int n = static_cast<int>(wishes.size());
  return errors_on_threads(n, [&](int rank) {
    const auto store = std::make_shared<TcpStore>("127.0.0.1", table.port());
    const auto group = make_process_group("gloo", {.store = store,
                                                   .rank = rank,
                                                   .world_size = n,
                                                   .timeout = 60s,
                                                   .transport = wishes[static_cast<std::size_t>(rank)]});
    body(*group);
    group->barrier().wait();
  });
}

rusage usage() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u;
}

double cpu_seconds(const rusage& u) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

}  // namespace

TEST_CASE("transport: sums in shared memory have the bits of those over TCP") {
  for (const int n : {2, 3, 4}) {
    std::map<std::string, std::vector<std::vector<std::byte>>> results;  // by transport
    for (const std::string& transport : kTransports) {
      std::vector<std::vector<std::vector<std::byte>>> of_rank(static_cast<std::size_t>(n));
      in_group(
          n,
          [&](ProcessGroup& group) {
            auto& own = of_rank[static_cast<std::size_t>(group.rank())];
            Generator rng(static_cast<std::uint64_t>(group.rank()));
            for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
              for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::product, ReduceOp::max}) {
                const Tensor t = randn({op == ReduceOp::sum ? 200'003 : 1001}, {.generator = &rng}).to(dtype);
                group.all_reduce(t, op).wait();
                own.push_back(bytes_of(t));
                const Tensor in = randn({n, 77}, {.generator = &rng}).to(dtype), out = empty({77}, {.dtype = dtype});
                group.reduce_scatter(out, in, op).wait();
                own.push_back(bytes_of(out));
                group.reduce(in, n - 1, op).wait();
                if (group.rank() == n - 1) own.push_back(bytes_of(in));
              }
            }
            // Sizes that just fit into a mailbox message of many ranks or of two, and that just do not; the largest
            // eager all-reduce of two ranks, and more.
            for (const int64_t numel :
                 {4000, 4095, 4096, 4097, 4120, 60'001, 131'064, 131'065, 131'072, 262'144, 262'145}) {
              const Tensor t = randn({numel}, {.generator = &rng});
              group.all_reduce(t, numel % 2 == 0 ? ReduceOp::avg : ReduceOp::min).wait();
              own.push_back(bytes_of(t));
            }
          },
          transport);
      for (const auto& list : of_rank) {
        for (const auto& r : list) results[transport].push_back(r);
      }
      CHECK(of_rank[0][0] == of_rank[1][0]);
    }
    CHECK(results["tcp"].size() == results["shared"].size());
    CHECK(results["tcp"] == results["shared"]);
  }
}

TEST_CASE("transport: three hundred operations of all kinds and sizes in a row") {
  for (const std::string& transport : kTransports) {
    in_group(
        3,
        [](ProcessGroup& group) {
          Generator rng(4);  // equal on all ranks
          const int rank = group.rank();
          int wrong = 0;
          for (int i = 0; i < 300; ++i) {
            const auto kind = rng.below(5);
            const auto n = static_cast<int64_t>(rng.below(i % 10 == 0 ? 300'000 : 300)),
                       root = static_cast<int64_t>(rng.below(3));
            const Tensor t = full({n}, static_cast<double>(i + rank), {.dtype = kInt64}),
                         all = empty({3 * n}, {.dtype = kInt64});
            const auto holds = [&](const Tensor& got, int64_t value) {
              if (got.numel() != 0 && !got.eq(value).all().item<bool>()) ++wrong;
            };
            if (kind == 0) {
              group.all_reduce(t).wait();
              holds(t, 3 * i + 3);
            } else if (kind == 1) {
              group.broadcast(t, static_cast<int>(root)).wait();
              holds(t, i + root);
            } else if (kind == 2) {
              group.reduce(t, static_cast<int>(root)).wait();
              if (rank == root) holds(t, 3 * i + 3);
            } else if (kind == 3) {
              group.all_gather(all, t).wait();
              for (int r = 0; r < 3; ++r) holds(all.narrow(0, r * n, n), i + r);
            } else {
              group.reduce_scatter(t, full({3 * n}, static_cast<double>(rank), {.dtype = kInt64})).wait();
              holds(t, 3);
            }
          }
          CHECK(wrong == 0);
        },
        transport);
  }
}

TEST_CASE("transport: threads wait for works of one group, in any order, and with a timeout") {
  for (const std::string& transport : kTransports) {
    in_group(
        2,
        [](ProcessGroup& group) {
          int wrong = 0;
          for (int round = 0; round < 20; ++round) {
            std::vector<Tensor> sums;
            std::vector<Work> works;
            for (int64_t n = 0; n < 8; ++n) {
              sums.push_back(full({n % 2 == 0 ? 10 + n : 40'000 + n}, static_cast<double>(n + group.rank())));
              works.push_back(group.all_reduce(sums.back()));
            }
            std::vector<std::thread> threads;
            for (std::size_t i = 0; i < works.size(); ++i) {
              threads.emplace_back([&, i] { works[(5 * i + 3) % works.size()].wait(); });
            }
            for (std::thread& t : threads) t.join();
            for (std::size_t i = 0; i < sums.size(); ++i) {
              if (!sums[i].eq(static_cast<double>(2 * i + 1)).all().item<bool>()) ++wrong;
            }
          }
          CHECK(wrong == 0);
          group.barrier().wait();
          if (group.rank() == 1) std::this_thread::sleep_for(300ms);
          const Work late = group.all_reduce(ones({3}));
          if (group.rank() == 0) CHECK_THROWS_AS(late.wait(50ms), CollectiveTimeout);
          late.wait();
        },
        transport);
  }
}

TEST_CASE("transport: shared memory is the default, unless a rank requests TCP") {
  std::atomic<int> mapped = 0;
  const auto look = [&](ProcessGroup& group) {
    group.barrier().wait();
    mapped += memory_is_mapped() ? 1 : 0;
    group.barrier().wait();
  };
  const auto none = [](const std::vector<std::string>& errors) {
    for (const std::string& e : errors) CHECK(e == "");
  };
  none(meet({"auto", "", "shared"}, look));
  CHECK(mapped.exchange(0) == 3);
  none(meet({"tcp", "tcp", "tcp"}, look));
  CHECK(mapped == 0);
  none(meet({"auto", "tcp", ""}, look));
  none(meet({"tcp", "auto", "auto"}, look));
  CHECK(mapped == 0);
  for (const std::string& e : meet({"auto", "shared", "tcp"}, look)) {
    CHECK(e == "[gloo] the ranks cannot share memory: rank 2 chose tcp. Choose the transport auto or tcp.");
  }
  for (const std::string& e : meet({"pigeons", "pigeons"}, look)) {
    CHECK(e.find("there is no transport \"pigeons\"") != std::string::npos);
  }
}

TEST_CASE("transport: LEVIN_TRANSPORT applies if the program does not choose") {
  const auto result = run_on_ranks(
      2,
      [](ProcessGroup& group) {
        for (const std::string& transport : kTransports) {
          setenv("LEVIN_TRANSPORT", transport.c_str(), 1);
          const std::string file = "/tmp/levin-test-" + std::to_string(getppid()) + transport;
          const auto store = open_store({.rank = group.rank(), .world_size = 2}, "file://" + file, 60s);
          const auto own = make_process_group("gloo", {.store = store, .rank = group.rank(), .world_size = 2});
          own->barrier().wait();
          CHECK(memory_is_mapped() == (transport == "shared"));
          own->barrier().wait();
          if (group.rank() == 0) std::filesystem::remove(file);
        }
      },
      60s, "tcp");
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}

TEST_CASE("transport: a rank that waits in shared memory yields its core") {
  const auto result = run_on_ranks(
      2,
      [](ProcessGroup& group) {
        group.barrier().wait();
        const rusage before = usage();
        if (group.rank() == 1) std::this_thread::sleep_for(2s);
        group.all_reduce(ones({1000})).wait();
        const rusage after = usage();
        CHECK(cpu_seconds(after) - cpu_seconds(before) < 0.6);
        // It slept repeatedly, even if others use most of the cores.
        if (group.rank() == 0) CHECK(after.ru_nvcsw - before.ru_nvcsw > 10);
      },
      60s, "shared");
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}
