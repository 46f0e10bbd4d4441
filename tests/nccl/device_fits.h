#pragma once
// Fits of a small network by the Trainer on several devices, a process each. A test case starts itself again, once for
// each rank; there its body runs.
#include <levin/kernels/cuda.h>

#include "trainer/processes.h"
#include "trainer/toy.h"

namespace levin::test {

[[maybe_unused]] inline const int four_devices = setenv("LEVIN_EMULATED_DEVICES", "4", 0);

inline TrainerConfig on_devices(const std::string& strategy, TrainerConfig c) {
  c.strategy = strategy;
  c.accelerator = "cuda";
  c.devices = strategy == "single" ? 1 : ranks();
  c.timeout = 60;
  return quiet(c);
}

/// On ranks whose NCCL has not been told of an algorithm by tests before.
inline void pass_on_devices(int n, const std::function<void()>& body) {
  unsetenv("NCCL_ALGO");
  pass_on(n, body);
}

}  // namespace levin::test
