#pragma once
// Fits of one small network under a strategy, on the ranks of a test case.

#include "trainer/processes.h"
#include "trainer/toy.h"

namespace levin::test {

inline TrainerConfig with_strategy(const std::string& strategy, TrainerConfig c = {}) {
  c.strategy = strategy;
  if (strategy != "single") c.accelerator = "cpu";
  c.timeout = 60;
  return quiet(c);
}

}  // namespace levin::test
