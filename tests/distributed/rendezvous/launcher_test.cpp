// Ranks as processes: they start, rendezvous, and none outlives the others if one fails.
#include <levin/autograd/autograd.h>
#include <signal.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "distributed/ranks.h"
#include "distributed/rendezvous/sockets.h"
#include "support/ticks.h"

using namespace levin;
using namespace levin::distributed;
using namespace std::chrono_literals;
using levin::test::pass_on_ranks;
using levin::test::run_on_ranks;

namespace {

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

LaunchResult run_shell(int processes, const std::string& script, Duration grace = 5s) {
  return launch({.processes = processes, .program = "/bin/sh", .arguments = {"sh", "-c", script}, .grace = grace});
}

}  // namespace

TEST_CASE("launcher: ranks rendezvous and know their ranks") {
  pass_on_ranks(3, [](ProcessGroup& group) {
    CHECK(group.size() == 3);
    const RankInfo info = rank_info(environment());
    CHECK(info.local_rank == group.rank());
    CHECK(info.local_world_size == 3);
    const Tensor t = full({10}, group.rank() + 1);
    group.all_reduce(t).wait();
    CHECK(t.to_vector<int>() == std::vector<int>(10, 6));
  });
}

TEST_CASE("launcher: a rank whose assertion fails makes the launch fail") {
  const auto result = run_on_ranks(2, [](ProcessGroup& group) { CHECK(group.rank() == 0); });
  if (!result) return;
  CHECK(result->launch.first_failed == 1);
  CHECK(result->launch.statuses[0] == 0);
  CHECK(result->launch.exit_status() != 0);
  CHECK(says(result->output, "CHECK( group.rank() == 0 ) is NOT correct!"));
}

TEST_CASE("launcher: the message of a rank that throws comes first") {
  const auto result = run_on_ranks(3, [](ProcessGroup& group) {
    group.barrier().wait();
    if (group.rank() == 1) throw ValueError("a bad batch");
    for (;;) group.all_reduce(ones({1000})).wait();
  });
  if (!result) return;
  INFO(result->output);
  const auto first = result->output.find("a bad batch"), other = result->output.find("rank 1 failed");
  CHECK(first != std::string::npos);
  CHECK(other != std::string::npos);
  CHECK(first < other);
  CHECK(count(result->output, "rank 1 failed: an exception ended the part of rank 1") == 2);
  CHECK(result->launch.first_failed == 1);
}

TEST_CASE("launcher: kill -9 of any rank ends the others within 5 s, whatever the timeout") {
  const char* which = std::getenv("LEVIN_TEST_VICTIM");
  const int victim = which != nullptr ? std::atoi(which) : 0;
  for (int v = 0; v < (is_launched() ? 1 : 2); ++v) {
    if (!is_launched()) setenv("LEVIN_TEST_VICTIM", std::to_string(2 * v).c_str(), 1);
    const auto result = run_on_ranks(4, [&](ProcessGroup& group) {
      group.barrier().wait();
      const levin::test::Ticks ticks;
      try {
        for (int i = 0;; ++i) {
          if (group.rank() == victim && i == 5) raise(SIGKILL);
          group.all_reduce(ones({100'000})).wait();
        }
      } catch (const RankLost& e) {
        CHECK(e.rank() == victim);
        CHECK(says(e.what(), "rank " + std::to_string(victim) + " is lost"));
        CHECK(says(e.what(), "[all_reduce #"));
        CHECK(ticks.count() < 5 * levin::test::Ticks::kPerSecond);
        std::cout << "noticed" << std::endl;
      }
    });
    if (!result) return;
    INFO(result->output);
    CHECK(count(result->output, "noticed") == 3);
    CHECK(result->launch.first_failed == 2 * v);
    CHECK(result->launch.statuses[static_cast<std::size_t>(2 * v)] == 128 + SIGKILL);
    CHECK(result->launch.exit_status() == 128 + SIGKILL);
  }
}

TEST_CASE("launcher: a rank that does not end by itself is killed") {
  const levin::test::TempDir dir;
  const std::string pids = (dir.path / "pids").string();
  // Rank 1 fails once the others are ready.
  const std::string script = "[ $RANK = 2 ] && trap '' TERM; echo $$ >> " + pids +
                             "; while [ $RANK = 1 ]; do [ $(wc -l < " + pids +
                             ") = 3 ] && exit 7; sleep 0.02; done; while :; do sleep 0.1; done";
  const LaunchResult result = run_shell(3, script, 100ms);
  CHECK(result.first_failed == 1);
  CHECK(result.exit_status() == 7);
  CHECK(result.statuses[0] == 128 + SIGTERM);
  CHECK(result.statuses[2] == 128 + SIGKILL);
  std::ifstream file(pids);
  int processes = 0;
  for (pid_t pid; file >> pid; ++processes) CHECK(kill(pid, 0) != 0);
  CHECK(processes == 3);
}

TEST_CASE("launcher: ranks die with the launcher") {
  const levin::test::TempDir dir;
  const std::string pids = (dir.path / "pids").string();
  const pid_t launcher = fork();
  if (launcher == 0) {
    run_shell(2, "echo $$ >> " + pids + "; exec sleep 100");
    _exit(0);
  }
  const auto read_pids = [&] {
    std::vector<pid_t> list;
    std::ifstream file(pids);
    for (pid_t pid; file >> pid;) list.push_back(pid);
    return list;
  };
  while (read_pids().size() < 2) std::this_thread::sleep_for(5ms);
  kill(launcher, SIGKILL);
  int status = 0;
  waitpid(launcher, &status, 0);
  const auto is_running = [](pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return file >> number >> name >> state && state != "Z";
  };
  int survivors = 0;
  for (const pid_t pid : read_pids()) {
    for (int i = 0; i < 1000 && is_running(pid); ++i) std::this_thread::sleep_for(5ms);
    if (!is_running(pid)) continue;
    ++survivors;
    kill(pid, SIGKILL);
  }
  CHECK(survivors == 0);
}

TEST_CASE("launcher: SIGTERM to the launcher reaches the ranks") {
  const levin::test::TempDir dir;
  const std::string out = (dir.path / "out").string();
  std::thread sender([&] {
    while (!std::filesystem::exists(out)) std::this_thread::sleep_for(5ms);
    kill(getpid(), SIGTERM);
  });
  const LaunchResult result = run_shell(1, "trap 'exit 43' TERM; : > " + out + "; while :; do sleep 0.05; done");
  sender.join();
  CHECK(result.exit_status() == 43);
}

TEST_CASE("launcher: a job's port is not reused, and its first rank may listen on it") {
  using levin::test::bind_error;
  {
    const HeldPort held;
    CHECK(bind_error(held.number()) == EADDRINUSE);
    const TcpStore server("127.0.0.1", held.number(), {.server = true});
    CHECK(server.port() == held.number());
  }
  const levin::test::TempDir dir;
  const std::string port = dir.path / "port", seen = dir.path / "seen";
  int error = 0;
  std::thread other([&] {
    while (!std::filesystem::exists(port)) std::this_thread::sleep_for(1ms);
    error = bind_error(std::stoi(io::read_text(port)));
    std::ofstream{seen};
  });
  const LaunchResult result = run_shell(1, "echo $MASTER_PORT > " + port + ".new; mv " + port + ".new " + port +
                                               "; while [ ! -e " + seen + " ]; do sleep 0.02; done");
  other.join();
  CHECK(result.exit_status() == 0);
  CHECK(error == EADDRINUSE);
}

TEST_CASE("launcher: invalid numbers are refused") {
  CHECK_THROWS_AS(launch({.processes = 0}), ValueError);
  CHECK_THROWS_AS(launch({.num_nodes = 2, .node_rank = 2, .master_port = 1234}), ValueError);
  CHECK_THROWS_AS(launch({.num_nodes = 2}), ValueError);
  CHECK_THROWS_WITH_AS(launch({.program = "/nonexistent"}),
                       "[launch] /nonexistent could not be started: No such file or directory.", DistributedError);
}
