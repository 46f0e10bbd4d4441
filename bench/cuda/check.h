#pragma once
// Checks the results of rungs and peers against rows computed in double precision.

#include "bench/cuda/problem.h"

namespace levin::bench {

/// Returns the error of the outputs' rows [first, first + count): the largest norm of a difference over the norm of the
/// exact result, or infinity if a value is not finite.
double error_of_rows(const Problem& problem, int64_t first, int64_t count);

/// Returns the problem with its exact rows cached, because rungs and peers are compared with the same ones.
Problem with_kept_rows(Problem problem);

/// Fills the outputs with NaN, runs once, and checks the first and last `count` rows, or all rows if there are fewer.
double error_of(const Problem& problem, const Run& run, int64_t count);

}  // namespace levin::bench
