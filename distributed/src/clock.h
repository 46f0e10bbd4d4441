#pragma once
// The clock of time limits and the unit in which the system's calls count them.

#include <levin/core/duration.h>

#include <chrono>

namespace levin::distributed {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

inline Clock::time_point from_now(Duration time) { return Clock::now() + Clock::duration(time); }

}  // namespace levin::distributed
