#pragma once
// Rung 1: one thread per element, as the float32 ladder's second rung.
// Idea: the definition, with coalesced loads; 16-bit numbers are widened to float one by one, the sum is a float and is
// rounded once. Bound: the cache's bandwidth; no tensor core is used.

#include "kernels/cuda/sgemm/02_coalesced.cuh"
