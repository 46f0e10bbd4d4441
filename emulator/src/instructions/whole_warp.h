#pragma once
// The check of instructions marked .aligned: all 32 lanes of a warp must execute them together from one place in the
// source.

#include <levin/emulator/execution.h>

#include <string>

namespace levin::emulator {

inline void require_whole_warp(const char* name, Site site) {
  if (live_lanes() != 0xffffffffu) fail(std::string(name) + " needs all 32 lanes of the warp: some have ended", site);
}

/// Checks the lanes of a warp_collective whose operands are, or begin with, a type that has a `site`.
template <class Operand>
void require_one_place(const char* name, void* const* operands) {
  const Site& first = static_cast<const Operand*>(operands[0])->site;
  for (int lane = 1; lane < 32; ++lane) {
    const Site& other = static_cast<const Operand*>(operands[lane])->site;
    if (other.line() == first.line() && other.column() == first.column()) continue;
    fail(std::string(name) + " in divergent code: lane 0 comes from line " + std::to_string(first.line()) + ", lane " +
             std::to_string(lane) + " from line " + std::to_string(other.line()),
         other);
  }
}

}  // namespace levin::emulator
