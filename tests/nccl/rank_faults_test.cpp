// Processes over NCCL, and faults of processes in the middle of training.
#include <levin/distributed/ddp.h>
#include <signal.h>

#include <thread>

#include "distributed/ddp_models.h"
#include "distributed/ranks.h"
#include "nccl/groups.h"

using namespace levin;
using namespace levin::distributed;
using namespace levin::test;
using namespace std::chrono_literals;

namespace {

using Time = std::chrono::steady_clock;

[[maybe_unused]] const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Runs the body on n processes, rank r on cuda:r, and returns their results; nothing within a rank.
std::optional<RanksResult> run_on_devices(int n, const RankBody& body) {
  if (!is_launched()) return run_test_again(n);
  const RankInfo info = rank_info(environment());
  const auto store = open_store(info, "env://", std::chrono::seconds(60));
  join(*store, info);
  const auto group = make_process_group(
      kBoth, {.store = store, .rank = info.rank, .world_size = info.world_size, .device = info.local_rank});
  const cuda::DeviceGuard device(info.local_rank);
  body(*group);
  return std::nullopt;
}

Tensor there(int64_t n) { return ones({n}, {.device = own_device()}); }

}  // namespace

TEST_CASE("nccl processes: three ranks train as one on the whole batch") {
  const auto result = run_on_devices(3, [](ProcessGroup& group) {
    Net alone(1), net(static_cast<std::uint64_t>(1 + group.rank()));
    const auto expected = train(alone, 3, [&](int s) { loss_of(alone(input(s))).backward(); });
    net.to(own_device());
    DistributedDataParallel ddp(net, shared(group), small());
    const auto got =
        train(net, 3, [&](int s) { loss_of(ddp(part(input(s), group.rank(), 3).to(own_device()))).backward(); });
    CHECK(distance(got, expected) < 1e-6);
    group.barrier().wait();
  });
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}

TEST_CASE("nccl fault: kill -9 of one of three ranks in backward ends the others within 5 s") {
  const auto result = run_on_devices(3, [](ProcessGroup& group) {
    nn::Linear net(16, 16);
    net.to(own_device());
    DistributedDataParallel ddp(net, shared(group));
    auto died = Time::now();
    try {
      for (int step = 0;; ++step) {
        const Tensor y = ddp(ones({8, 16}, {.device = own_device()}));
        if (group.rank() == 2 && step == 3) {
          y.register_hook([](const Tensor& g) {
            raise(SIGKILL);
            return g;
          });
        }
        died = Time::now();
        sum(y).backward();
        net.parameters()[0].grad().to_vector<double>();  // the host waits for the device
      }
    } catch (const RankLost& e) {
      CHECK(e.rank() == 2);
      CHECK(Time::now() - died < 5s);
      std::cout << "noticed" << std::endl;
    }
  });
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "noticed") == 2);
  CHECK(result->launch.first_failed == 2);
  CHECK(result->launch.exit_status() == 128 + SIGKILL);
}

TEST_CASE("nccl fault: a stalled rank ends the group at the timeout") {
  const auto result = run_on_devices(3, [](ProcessGroup& group) {
    const Tensor process = from_data({static_cast<int64_t>(getpid())}, {1}), processes = empty({3}, {.dtype = kInt64});
    group.all_gather(processes, process).wait();
    group.all_reduce(there(10)).wait();
    group.set_timeout(500ms);
    if (group.rank() == 1) {
      raise(SIGSTOP);
      std::_Exit(5);  // resumed after the others have ended
    }
    try {
      const Work work = group.all_reduce(there(10));
      work.wait();
      work.wait(20s);
    } catch (const CollectiveTimeout& e) {
      CHECK(says(e.what(), "waited 0.5 s in all_reduce #2 (sum) of 10 float32"));
      std::cout << "noticed" << std::endl;
    }
    if (group.rank() == 0) {
      std::this_thread::sleep_for(500ms);  // the others reach their timeouts too
      kill(static_cast<pid_t>(processes.to_vector<int64_t>()[1]), SIGCONT);
    }
  });
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "noticed") == 2);
  CHECK(result->launch.statuses == std::vector<int>{0, 5, 0});
}

TEST_CASE("nccl fault: one rank throws in its step, the others end with its message") {
  const auto result = run_on_devices(3, [](ProcessGroup& group) {
    nn::Linear net(4, 4);
    net.to(own_device());
    DistributedDataParallel ddp(net, shared(group));
    for (int step = 0;; ++step) {
      try {
        if (group.rank() == 1 && step == 2) throw ShapeError("[linear] the batch is bad");
        sum(ddp(ones({2, 4}, {.device = own_device()}))).backward();
      } catch (const ShapeError& e) {
        group.abort(e.what());
        throw;
      }
    }
  });
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "rank 1 failed: [linear] the batch is bad") == 2);
  CHECK(result->output.find("[linear] the batch is bad") < result->output.find("rank 1 failed"));
  for (const int status : result->launch.statuses) CHECK(status == 1);
}
