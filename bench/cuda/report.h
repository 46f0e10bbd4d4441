#pragma once
// Rows of the CUDA benchmarks as JSON.

#include "bench/cuda/measure.h"

#include <nlohmann/json.hpp>

namespace levin::bench {

using Json = nlohmann::ordered_json;

/// Checks every rung and every peer of a problem on all rows, and takes the way of a measurement, whose figures are
/// dropped. Rows: family, rung, shape, dtype, sizes, error, tolerance, ok, peers by name (error and ok, or missing).
Json check_problem(const Problem& problem, Meter& meter);
/// The row of one rung. `problem` has its exact rows kept (with_kept_rows).
Json check_rung(const Problem& problem, const Rung& rung, Meter& meter);

/// Measures every rung. Rows as above for a few rows of the result, with unit, seconds, least_seconds, calls, cache,
/// bytes, flops, floor_seconds and share (of the floor), which are null where a rate is not known, and for each peer
/// seconds, ratio (above 1: Levin is faster), lower_ratio and upper_ratio, or missing with the reason.
Json measure_problem(const Problem& problem, Meter& meter, const Ceilings& ceilings);
Json measure_rung(const Problem& problem, const Rung& rung, Meter& meter, const Ceilings& ceilings);

/// name, family, rung, shape, dtype and sizes: how every row begins.
Json head_of(const Problem& problem, const Rung& rung);
/// The row of something that has no result, for this reason.
Json failed_row(Json head, const std::string& reason);

/// device, driver, ceilings and the like.
Json describe_machine(const Ceilings& ceilings);

}  // namespace levin::bench
