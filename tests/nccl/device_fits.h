#pragma once
// Fits a small network with the Trainer on several devices, one process each. A test case starts itself again once per
// rank, where its body runs.
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

/// Runs `body` on ranks without the NCCL settings of earlier tests.
inline void pass_on_devices(int n, const std::function<void()>& body) {
  unsetenv("NCCL_ALGO");
  pass_on(n, body);
}

}  // namespace levin::test
