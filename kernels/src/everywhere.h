#pragma once
// The attributes of a function that the host and CUDA's kernels call.

#if defined(__CUDACC__)
#define LEVIN_EVERYWHERE __host__ __device__
#else
#define LEVIN_EVERYWHERE
#endif
