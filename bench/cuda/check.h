#pragma once
// Whether rungs and peers compute the right thing, judged by rows in double precision.

#include "bench/cuda/problem.h"

namespace levin::bench {

/// The error of the outputs' rows [first, first + count): the largest norm of a difference over the norm of the exact
/// result. Infinite where something is not finite.
double error_of_rows(const Problem& problem, int64_t first, int64_t count);

/// The problem with its exact rows kept, as rungs and peers are judged by the same ones.
Problem with_kept_rows(Problem problem);

/// Spoils the outputs, runs once, and judges `count` rows at the beginning and as many at the end, or all rows.
double error_of(const Problem& problem, const Run& run, int64_t count);

}  // namespace levin::bench
