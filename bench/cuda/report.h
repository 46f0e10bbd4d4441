#pragma once
// Rows of the CUDA benchmarks as JSON.

#include "bench/cuda/measure.h"

#include <nlohmann/json.hpp>

namespace levin::bench {

using Json = nlohmann::ordered_json;

/// Checks every rung and every peer of a problem on all rows, and also runs the measurement, whose timings are dropped.
/// Rows: family, rung, shape, dtype, sizes, error, tolerance, ok, peers by name (error and ok, or missing).
Json check_problem(const Problem& problem, Meter& meter);
/// Returns the row of one rung. `problem` has its exact rows cached (with_kept_rows).
Json check_rung(const Problem& problem, const Rung& rung, Meter& meter);

/// Measures every rung and checks some rows of its result. Rows as above, and unit, seconds, least_seconds, calls,
/// cache, bytes, flops, floor_seconds and share (of the floor), which are null where a peak is unknown, and for each
/// peer seconds, ratio (above 1: Levin is faster), lower_ratio and upper_ratio, or missing with the reason.
Json measure_problem(const Problem& problem, Meter& meter, const Ceilings& ceilings);
Json measure_rung(const Problem& problem, const Rung& rung, Meter& meter, const Ceilings& ceilings);

/// Returns the members that every row begins with: name, family, rung, shape, dtype and sizes.
Json head_of(const Problem& problem, const Rung& rung);
/// Returns a row that is not ok for this reason.
Json failed_row(Json head, const std::string& reason);

/// Returns the device, the driver, the ceilings and so on.
Json describe_machine(const Ceilings& ceilings);

}  // namespace levin::bench
