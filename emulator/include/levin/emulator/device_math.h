#pragma once
// CUDA's mathematical functions and intrinsics under their own names, in the global namespace as in CUDA. The
// approximate ones (__expf and others) use the C library, so the GPU's larger errors do not show here.

#include <levin/emulator/device_integer.h>
#include <levin/emulator/execution.h>

#include <assert.h>
#include <math.h>    // with float overloads of abs, exp, isnan... outside of std, as CUDA has them
#include <stdlib.h>  // abs of integers
#include <time.h>

#include <type_traits>

// Versions of glibc that add functions with CUDA's names: rsqrt (2.42), sinpi and cospi (2.41).
#if defined(__GLIBC__)
#define LEVIN_EMULATOR_C_LIBRARY (__GLIBC__ * 100 + __GLIBC_MINOR__)
#else
#define LEVIN_EMULATOR_C_LIBRARY 0
#endif

// --- Arithmetic rounded to nearest ----------------------------------------------------------------------------------
// The operations are never contracted to a fused multiply-add, because this is compiled with -ffp-contract=off.

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline float __fsqrt_rn(float a) { return sqrtf(a); }
inline float __frsqrt_rn(float a) { return static_cast<float>(1.0 / sqrt(static_cast<double>(a))); }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
inline double __drcp_rn(double a) { return 1.0 / a; }
inline double __dsqrt_rn(double a) { return sqrt(a); }

/// Clamps to [0, 1]; NaN gives 0.
inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

// --- Fast approximations --------------------------------------------------------------------------------------------

/// As on the GPU, the reciprocal of a divisor above 2^126 is 0.
inline float __fdividef(float a, float b) { return fabsf(b) > 0x1p126f ? a * copysignf(0.0f, b) : a / b; }

// glibc declares functions with these names itself, with C linkage and noexcept.
extern "C" {
inline float __expf(float x) noexcept { return expf(x); }
inline float __exp10f(float x) noexcept { return static_cast<float>(pow(10.0, static_cast<double>(x))); }
inline float __logf(float x) noexcept { return logf(x); }
inline float __log2f(float x) noexcept { return log2f(x); }
inline float __log10f(float x) noexcept { return log10f(x); }
inline float __sinf(float x) noexcept { return sinf(x); }
inline float __cosf(float x) noexcept { return cosf(x); }
inline float __tanf(float x) noexcept { return tanf(x); }
inline float __tanhf(float x) noexcept { return tanhf(x); }
/// Computed from log2(x), as on the GPU: NaN for every x below 0.
inline float __powf(float x, float y) noexcept { return exp2f(y * log2f(x)); }
inline void __sincosf(float x, float* sine, float* cosine) noexcept { *sine = sinf(x), *cosine = cosf(x); }
}

// --- Functions that C lacks -----------------------------------------------------------------------------------------

#if LEVIN_EMULATOR_C_LIBRARY < 242
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rsqrtf(float x) { return static_cast<float>(1.0 / sqrt(static_cast<double>(x))); }
#endif
inline float rsqrt(float x) { return rsqrtf(x); }
inline double rcbrt(double x) { return 1.0 / cbrt(x); }
inline float rcbrtf(float x) { return static_cast<float>(1.0 / cbrt(static_cast<double>(x))); }
#if !defined(_GNU_SOURCE)
inline double exp10(double x) { return pow(10.0, x); }
inline float exp10f(float x) { return static_cast<float>(pow(10.0, static_cast<double>(x))); }
inline void sincos(double x, double* sine, double* cosine) { *sine = sin(x), *cosine = cos(x); }
inline void sincosf(float x, float* sine, float* cosine) { *sine = sinf(x), *cosine = cosf(x); }
#endif

namespace levin::emulator {
/// Computes sin(pi x) and cos(pi x), exact at multiples of 1/2.
inline void sine_and_cosine_of_pi(double x, double* sine, double* cosine) {
  const double turned = ::remainder(x, 2.0);  // in [-1, 1]
  const double quarters = ::nearbyint(2.0 * turned);
  const double angle = 3.141592653589793 * (turned - 0.5 * quarters);
  const double s = ::sin(angle), c = ::cos(angle);
  switch (std::isfinite(x) ? static_cast<int>(quarters) & 3 : 0) {
    case 0:
      *sine = s, *cosine = c;
      break;
    case 1:
      *sine = c, *cosine = -s;
      break;
    case 2:
      *sine = -s, *cosine = -c;
      break;
    default:
      *sine = -c, *cosine = s;
      break;
  }
}
}  // namespace levin::emulator

inline void sincospi(double x, double* sine, double* cosine) {
  levin::emulator::sine_and_cosine_of_pi(x, sine, cosine);
}
inline void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  sincospi(static_cast<double>(x), &s, &c);
  *sine = static_cast<float>(s), *cosine = static_cast<float>(c);
}
#if LEVIN_EMULATOR_C_LIBRARY < 241
inline double sinpi(double x) {
  double s, c;
  sincospi(x, &s, &c);
  return s;
}
inline double cospi(double x) {
  double s, c;
  sincospi(x, &s, &c);
  return c;
}
inline float sinpif(float x) { return static_cast<float>(sinpi(static_cast<double>(x))); }
inline float cospif(float x) { return static_cast<float>(cospi(static_cast<double>(x))); }
#endif
#undef LEVIN_EMULATOR_C_LIBRARY

inline double rhypot(double x, double y) { return 1.0 / hypot(x, y); }
inline float rhypotf(float x, float y) {
  return static_cast<float>(rhypot(static_cast<double>(x), static_cast<double>(y)));
}
inline double normcdf(double x) { return 0.5 * erfc(-0.7071067811865476 * x); }
inline float normcdff(float x) { return static_cast<float>(normcdf(static_cast<double>(x))); }

/// Improves a guess by Newton steps, on erf near 0 and on erfc in the tails, where 1 - |x| is exact.
inline double erfinv(double x) {
  const double magnitude = fabs(x);
  if (!(magnitude < 1.0)) return magnitude == 1.0 ? copysign(HUGE_VAL, x) : copysign(NAN, x);
  const double logarithm = log1p(-magnitude * magnitude), part = 4.33 + 0.5 * logarithm;
  double y = sqrt(sqrt(part * part - logarithm / 0.147) - part);
  if (magnitude < 1e-8) y = 0.886226925452758 * magnitude;
  for (int step = 0; step < 4; ++step) {
    const double off = magnitude < 0.5 ? erf(y) - magnitude : (1.0 - magnitude) - erfc(y);
    const double newton = off / (1.1283791670955126 * exp(-y * y));
    y -= newton / (1.0 + y * newton);  // a Halley step: the second derivative is -2y times the first
  }
  return copysign(y, x);
}
inline float erfinvf(float x) { return static_cast<float>(erfinv(static_cast<double>(x))); }

// --- Minimum and maximum: a number wins over NaN --------------------------------------------------------------------

inline float min(float a, float b) { return fminf(a, b); }
inline double min(double a, double b) { return fmin(a, b); }
inline double min(float a, double b) { return fmin(static_cast<double>(a), b); }
inline double min(double a, float b) { return fmin(a, static_cast<double>(b)); }
inline float max(float a, float b) { return fmaxf(a, b); }
inline double max(double a, double b) { return fmax(a, b); }
inline double max(float a, double b) { return fmax(static_cast<double>(a), b); }
inline double max(double a, float b) { return fmax(a, static_cast<double>(b)); }

// --- Loads and stores with cache hints, which are ignored here ------------------------------------------------------

#define LEVIN_EMULATOR_LOAD(name)                   \
  template <class T>                                \
  inline T name(const T* p) {                       \
    static_assert(std::is_trivially_copyable_v<T>); \
    return *p;                                      \
  }
#define LEVIN_EMULATOR_STORE(name)                        \
  template <class T>                                      \
  inline void name(T* p, std::type_identity_t<T> value) { \
    static_assert(std::is_trivially_copyable_v<T>);       \
    *p = value;                                           \
  }
LEVIN_EMULATOR_LOAD(__ldg)
LEVIN_EMULATOR_LOAD(__ldca)
LEVIN_EMULATOR_LOAD(__ldcg)
LEVIN_EMULATOR_LOAD(__ldcs)
LEVIN_EMULATOR_LOAD(__ldlu)
LEVIN_EMULATOR_LOAD(__ldcv)
LEVIN_EMULATOR_STORE(__stwb)
LEVIN_EMULATOR_STORE(__stcg)
LEVIN_EMULATOR_STORE(__stcs)
LEVIN_EMULATOR_STORE(__stwt)
#undef LEVIN_EMULATOR_LOAD
#undef LEVIN_EMULATOR_STORE

// --- The running thread ---------------------------------------------------------------------------------------------

/// Returns nanoseconds here. The value never decreases.
inline long long int clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<long long int>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
/// Lets other threads run without sleeping, for loops that wait for memory to change.
inline void __nanosleep(unsigned int) { levin::emulator::yield_thread(); }

/// Ends the kernel with an error.
[[noreturn]] inline void __trap(levin::emulator::Site site = levin::emulator::Site::current()) {
  levin::emulator::fail("__trap", site);
}
