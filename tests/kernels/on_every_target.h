#pragma once
// Runs a test's body with each instruction set of this machine.

#include "kernels/cpu/targets.h"

#include <doctest/doctest.h>
#include <hwy/targets.h>

#include <cstdint>

namespace levin::test {

/// Runs `body` with all of the machine's instruction sets that kernels are compiled for, then without the best one, and
/// so on down to the baseline.
template <class F>
void on_every_target(F&& body) {
  const std::int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  std::int64_t enabled = all;
  while (true) {
    hwy::GetChosenTarget().Update(enabled);
    INFO("instruction sets ", enabled);
    body();
    const std::int64_t best = enabled & -enabled;  // better sets have lower bits
    if (enabled == best) break;
    enabled &= ~best;
  }
  hwy::GetChosenTarget().Update(all);
}

}  // namespace levin::test
