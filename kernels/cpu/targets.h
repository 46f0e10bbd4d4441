#pragma once
// Instruction sets that the SIMD kernels are compiled for: SSE4, AVX2 and AVX-512 on x86. SSE4 is the baseline,
// since Highway 1.0 has none between it and scalar emulation; core/src/cpu_backend.h rejects older processors.
// Builds with a sanitizer have AVX2 alone where the compiler may use it (-march=haswell), else SSE4 and AVX2, since
// sanitizers take minutes to compile the widest tiles. LEVIN_SIMD=native compiles them for one alone. On 64-bit Arm
// it is NEON alone: the tiles are arrays of vectors, and C++ has no arrays of SVE's vectors, whose size is unknown
// to the compiler. Include this header before <hwy/foreach_target.h>.
#include <levin/core/simd_build.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEVIN_SANITIZED 1
#endif
#if defined(__x86_64__) && !defined(HWY_BASELINE_TARGETS)
#if defined(LEVIN_SIMD_ONLY)
#define HWY_BASELINE_TARGETS LEVIN_SIMD_ONLY
#elif defined(LEVIN_SANITIZED) && defined(__AVX2__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#else
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#endif
#ifndef HWY_DISABLED_TARGETS
#if defined(__aarch64__)
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#elif defined(LEVIN_SIMD_ONLY)  // wider instruction sets have smaller numbers
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | (LEVIN_SIMD_ONLY - 1))
#elif defined(LEVIN_SANITIZED)
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
#endif

// Programs need Highway's headers but not its library, whose two functions for the choice at run time are defined in
// targets.cpp. They have names of their own, so that a program may link the library as well.
#define SupportedTargets levin_supported_targets
#define GetChosenTarget levin_chosen_target
