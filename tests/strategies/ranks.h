#pragma once
// Fits of one small network under a strategy, on the ranks of a test case.

#include "trainer/processes.h"
#include "trainer/toy.h"

namespace levin::test {

inline TrainerConfig on_cpu(const std::string& strategy, TrainerConfig c = {}) {
  c.strategy = strategy;
  c.accelerator = "cpu";
  c.timeout = 60;
  return quiet(c);
}

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

}  // namespace levin::test
