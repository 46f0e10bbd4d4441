#pragma once
// Rung 2: tiles in shared memory, as the float32 ladder's third rung.
// Idea: 32 x 32 tiles of 16-bit numbers in shared memory, each read 32 times. Changes against rung 1: 32 times fewer
// reads of global memory. Bound: shared memory and the conversions; still no tensor core.

#include "kernels/cuda/sgemm/03_shared_tile.cuh"
