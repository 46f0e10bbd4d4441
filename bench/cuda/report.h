#pragma once
// Rows of the CUDA benchmarks as JSON.

#include "bench/cuda/measure.h"

#include <nlohmann/json.hpp>

namespace levin::bench {

using Json = nlohmann::ordered_json;

/// Checks every rung and every peer of a problem on all rows, and takes the way of a measurement, whose figures are
/// dropped. Rows: family, rung, shape, dtype, sizes, error, tolerance, ok, peers by name (error and ok, or missing).
Json check_problem(const Problem& problem, Meter& meter);

/// Measures every rung. Rows as above for a few rows of the result, with unit, seconds, least_seconds, calls, cache,
/// bytes, flops, floor_seconds and share (of the floor), which are null where a rate is not known, and for each peer
/// seconds, ratio (above 1: Levin is faster), lower_ratio and upper_ratio, or missing with the reason.
Json measure_problem(const Problem& problem, Meter& meter, const Ceilings& ceilings);

/// device, driver, ceilings and the like.
Json describe_machine(const Ceilings& ceilings);

}  // namespace levin::bench
