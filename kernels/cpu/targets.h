#pragma once
// Instruction sets that the SIMD kernels are compiled for: SSE4, AVX2 and AVX-512 on x86. SSE4 is the baseline, since
// Highway 1.0 has none between it and scalar emulation; core/src/cpu_backend.h rejects older processors. Builds with a
// sanitizer, which takes minutes for the widest tiles, have SSE4 and AVX2. Include this header before
// <hwy/foreach_target.h>.
#if defined(__x86_64__) && !defined(HWY_BASELINE_TARGETS)
#define HWY_BASELINE_TARGETS HWY_SSE4
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LEVIN_SANITIZED 1
#elif defined(__has_feature)  // clang
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LEVIN_SANITIZED 1
#endif
#endif
#ifndef HWY_DISABLED_TARGETS
#ifdef LEVIN_SANITIZED
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3 | HWY_AVX3_DL)
#else
#define HWY_DISABLED_TARGETS HWY_SSSE3
#endif
#endif
