// Faults of processes in the middle of training.
#include <levin/autograd/autograd.h>
#include <levin/distributed/ddp.h>
#include <levin/nn/nn.h>
#include <signal.h>

#include <thread>

#include "distributed/ranks.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::run_on_ranks;

namespace {

using Time = std::chrono::steady_clock;

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// The bodies of the tests run once over TCP and once in shared memory.
void kill_in_backward(const std::string& transport) {
  const auto train = [](ProcessGroup& group) {
    nn::Linear net(64, 64);
    DistributedDataParallel ddp(net, {&group, [](ProcessGroup*) {}});
    const auto died = Time::now();
    try {
      for (int step = 0;; ++step) {
        const Tensor y = ddp(ones({8, 64}));
        if (group.rank() == 2 && step == 3) {
          y.register_hook([](const Tensor& g) {
            raise(SIGKILL);
            return g;
          });
        }
        sum(y).backward();
      }
    } catch (const RankLost& e) {
      CHECK(e.rank() == 2);
      CHECK(says(e.what(), "[all_reduce #"));
      CHECK(Time::now() - died < 5s);
      std::cout << "noticed" << std::endl;
    }
  };
  const auto result = run_on_ranks(4, train, kDefaultTimeout, transport);
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "noticed") == 3);
  CHECK(result->launch.first_failed == 2);
  CHECK(result->launch.exit_status() == 128 + SIGKILL);
}

void stall(const std::string& transport) {
  const auto result = run_on_ranks(
      3,
      [](ProcessGroup& group) {
        const Tensor process = from_data({static_cast<int64_t>(getpid())}, {1}),
                     processes = empty({3}, {.dtype = kInt64});
        group.all_gather(processes, process).wait();
        group.set_timeout(500ms);
        if (group.rank() == 1) {
          raise(SIGSTOP);
          std::_Exit(5);  // resumed after the others have ended
        }
        try {
          group.all_reduce(ones({10})).wait();
        } catch (const CollectiveTimeout& e) {
          CHECK(says(e.what(), "waited 0.5 s in all_reduce #2 (sum) of 10 float32"));
          std::cout << "noticed" << std::endl;
        }
        if (group.rank() == 0) {
          std::this_thread::sleep_for(500ms);  // the others reach their timeouts too
          kill(static_cast<pid_t>(processes.to_vector<int64_t>()[1]), SIGCONT);
        }
      },
      60s, transport);
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "noticed") == 2);
  CHECK(result->launch.statuses == std::vector<int>{0, 5, 0});
}

void throw_in_step(const std::string& transport) {
  const auto train = [](ProcessGroup& group) {
    nn::Linear net(4, 4);
    DistributedDataParallel ddp(net, {&group, [](ProcessGroup*) {}});
    for (int step = 0;; ++step) {
      const auto start = Time::now();
      try {
        if (group.rank() == 1 && step == 2) throw ShapeError("[linear] the batch is bad");
        sum(ddp(ones({2, 4}))).backward();
      } catch (const ShapeError& e) {
        group.abort(e.what());
        throw;
      } catch (const RankLost&) {
        CHECK(Time::now() - start < 5s);
        throw;
      }
    }
  };
  const auto result = run_on_ranks(3, train, kDefaultTimeout, transport);
  if (!result) return;
  INFO(result->output);
  CHECK(count(result->output, "rank 1 failed: [linear] the batch is bad") == 2);
  CHECK(result->output.find("[linear] the batch is bad") < result->output.find("rank 1 failed"));
  CHECK(result->launch.first_failed == 1);
}

}  // namespace

TEST_CASE("fault: kill -9 of one of four ranks in backward") { kill_in_backward("tcp"); }
TEST_CASE("fault: kill -9 of one of four ranks in backward, in shared memory") { kill_in_backward("shared"); }
TEST_CASE("fault: a stalled rank ends the group at the timeout") { stall("tcp"); }
TEST_CASE("fault: a stalled rank ends the group at the timeout, in shared memory") { stall("shared"); }
TEST_CASE("fault: one rank throws in its step, the others end within 5 s with its message") { throw_in_step("tcp"); }
TEST_CASE("fault: one rank throws in its step, in shared memory") { throw_in_step("shared"); }
