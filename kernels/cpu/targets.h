#pragma once
// Instruction sets that the SIMD kernels are compiled for: the baseline, SSE4, AVX2 and AVX-512 on x86. SSSE3 alone is
// not worth its share of the build. Builds with a sanitizer, which takes minutes over the widest tiles, have the
// baseline and AVX2. To be included before <hwy/foreach_target.h>.
#ifndef HWY_DISABLED_TARGETS
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
#endif
