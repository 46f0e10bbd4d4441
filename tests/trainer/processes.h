#pragma once
// Runs the Trainer on several processes: a test case starts itself again once per rank, where its body runs.

#include <levin/trainer/strategy.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "distributed/ranks.h"
#include "support/comparison.h"

namespace levin::test {

/// Runs the body on n processes and tells how they ended; in a rank it gives nothing.
inline std::optional<RanksResult> on_processes(int n, const std::function<void()>& body) {
  if (distributed::is_launched()) {
    body();
    return std::nullopt;
  }
  return run_test_again(n);
}

/// Does the same; all ranks must pass.
inline void pass_on(int n, const std::function<void()>& body) {
  const auto result = on_processes(n, body);
  if (!result) return;
  INFO(result->output);
  CHECK(result->launch.exit_status() == 0);
}

inline int ranks() { return std::atoi(std::getenv("WORLD_SIZE")); }
inline int rank() { return std::atoi(std::getenv("RANK")); }

/// A folder that all ranks of a case know: its launcher has made it.
struct CommonDir {
  std::optional<TempDir> own;
  std::filesystem::path path;
  CommonDir() {
    if (!distributed::is_launched()) {
      own.emplace();
      setenv("LEVIN_TEST_FOLDER", own->path.c_str(), 1);
    }
    path = std::getenv("LEVIN_TEST_FOLDER");
  }
};

/// Whether all ranks have these values to the bit.
inline bool same_on_all(Strategy& strategy, const std::vector<std::vector<float>>& values) {
  std::vector<double> flat;
  for (const auto& list : values) flat.insert(flat.end(), list.begin(), list.end());
  StateMap own;
  own.set("values", flat);
  const auto all = strategy.gather(own);
  return std::all_of(all.begin(), all.end(), [&](const StateMap& other) { return other == own; });
}

}  // namespace levin::test
