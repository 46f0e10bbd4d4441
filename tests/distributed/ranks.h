#pragma once
// Runs a test's body on several processes: the test program starts itself again once per rank with only this test case,
// where the body runs and its assertions count. A test case has one such body.
//
//   TEST_CASE("ranks meet") {
//     levin::test::pass_on_ranks(3, [](levin::distributed::ProcessGroup& group) { CHECK(group.size() == 3); });
//   }

#include <doctest/doctest.h>
#include <fcntl.h>
#include <levin/core/io.h>
#include <levin/distributed/launcher.h>
#include <levin/distributed/process_group.h>
#include <unistd.h>

#include <iostream>

#include "support/files.h"

namespace levin::test {

struct RanksResult {
  distributed::LaunchResult launch;
  std::string output;  ///< output of all ranks
};

using RankBody = std::function<void(distributed::ProcessGroup&)>;

/// Redirects the output of this process and its children to a file for its lifetime.
class OutputTo {
 public:
  explicit OutputTo(const std::filesystem::path& path) {
    std::cout.flush();
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    for (const int fd : {1, 2}) {
      old_[fd - 1] = fcntl(fd, F_DUPFD_CLOEXEC, 3);
      dup2(file, fd);
    }
    close(file);
  }
  ~OutputTo() {
    std::cout.flush();
    for (const int fd : {1, 2}) {
      dup2(old_[fd - 1], fd);
      close(old_[fd - 1]);
    }
  }
  OutputTo(const OutputTo&) = delete;
  OutputTo& operator=(const OutputTo&) = delete;

 private:
  int old_[2] = {};
};

inline void run_rank(const RankBody& body, Duration timeout, const std::string& transport) {
  using namespace distributed;
  const RankInfo info = rank_info(environment());
  const auto store = open_store(info, "env://", std::chrono::seconds(60));
  join(*store, info);
  const auto group = make_process_group(
      "gloo",
      {.store = store, .rank = info.rank, .world_size = info.world_size, .timeout = timeout, .transport = transport});
  body(*group);
}

/// Runs the current test case again on n processes and returns their results.
inline RanksResult run_test_again(int n) {
  std::string name = doctest::getContextOptions()->currentTest->m_name;
  for (char& c : name) {
    if (c == ',') c = '?';  // commas separate filters; ? matches any character
  }
  const TempDir dir;
  RanksResult result;
  {
    const OutputTo file(dir.path / "output");
    result.launch = distributed::launch({.processes = n, .arguments = {"ranks", "--test-case=" + name}});
  }
  result.output = io::read_text(dir.path / "output");
  return result;
}

/// Runs the body on n processes and returns their results. Within a rank it runs the body and returns nothing,
/// whereupon the test case must return.
inline std::optional<RanksResult> run_on_ranks(int n, const RankBody& body,
                                               Duration timeout = distributed::kDefaultTimeout,
                                               const std::string& transport = "auto") {
  if (distributed::is_launched()) {
    run_rank(body, timeout, transport);
    return std::nullopt;
  }
  return run_test_again(n);
}

/// Does the same; all ranks must pass.
inline void pass_on_ranks(int n, const RankBody& body) {
  const auto result = run_on_ranks(n, [&](distributed::ProcessGroup& group) {
    body(group);
    group.barrier().wait();
  });
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}

}  // namespace levin::test
