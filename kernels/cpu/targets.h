#pragma once
// Instruction sets that the SIMD kernels are compiled for: the baseline, SSE4, AVX2 and AVX-512 on x86. SSSE3 alone is not
// worth its share of the build. To be included before <hwy/foreach_target.h>.
#ifndef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
