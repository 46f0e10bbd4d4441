#pragma once
// Special functions that the standard library lacks, for every device, in double precision.

#include "kernels/src/everywhere.h"

#include <cmath>

namespace levin::kernels::special {

/// The derivative of log(gamma(x)): upwards by recurrence to 12, then Stirling's series; by reflection below 0.
LEVIN_EVERYWHERE inline double digamma(double x) {
  constexpr double pi = 3.14159265358979323846;
  if (x == 0) return ::copysign(HUGE_VAL, -x);
  double result = 0;
  if (x < 0) {
    if (x == ::floor(x)) return NAN;
    result = -pi / ::tan(pi * (x - ::floor(x)));
    x = 1 - x;
  }
  for (; x < 12; ++x) result -= 1 / x;
  const double r = 1 / (x * x);
  const double series =
      r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * (691.0 / 32760))))));
  return result + ::log(x) - 0.5 / x - series;
}

/// Hurwitz' zeta function, the sum of (x + k)^-s over k >= 0, for s > 1: terms to x + k >= 12, then the Euler-Maclaurin
/// formula.
LEVIN_EVERYWHERE inline double hurwitz_zeta(double s, double x) {
  if (!(x > -1e4)) return NAN;  // so many terms that nobody waits for them
  double sum = 0;
  for (; x < 12; ++x) {
    if (x == 0) return HUGE_VAL;
    sum += ::pow(x, -s);
  }
  const double tail = ::pow(x, -s);
  sum += tail * x / (s - 1) + 0.5 * tail;
  // (2j)! / B_2j
  const double factors[] = {12.0,          -720.0,
                            30240.0,       -1209600.0,
                            47900160.0,    -1307674368000.0 / 691,
                            74724249600.0, -10670622842880000.0 / 3617};
  double term = tail * s / x, rising = s;
  for (const double factor : factors) {
    sum += term / factor;
    term *= (rising + 1) * (rising + 2) / (x * x);
    rising += 2;
  }
  return sum;
}

/// The n-th derivative of digamma, for a whole n >= 0.
LEVIN_EVERYWHERE inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  if (x == HUGE_VAL) return 0;
  double factorial = 1;
  for (double i = 2; i <= n; ++i) factorial *= i;
  return (::fmod(n, 2) == 0 ? -factorial : factorial) * hurwitz_zeta(n + 1, x);
}

/// Computes the inverse of erf by two steps of Halley's method. They start from Giles' approximation (2012), or within
/// 6e-8 of 1 and -1 from the first terms of erfc's asymptotic series.
LEVIN_EVERYWHERE inline double erfinv(double x) {
  constexpr double half_root_of_pi = 0.886226925452758013649;
  if (!(x > -1 && x < 1)) return x == 1 ? HUGE_VAL : x == -1 ? -HUGE_VAL : NAN;
  double w = -::log((1 - x) * (1 + x)), p;
  if (w < 5) {
    w -= 2.5;
    p = 2.81022636e-08;
    const double c[] = {3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                        -0.00125372503, -0.00417768164, 0.246640727,     1.50140941};
    for (const double a : c) p = a + p * w;
  } else if (w < 16) {
    w = ::sqrt(w) - 3;
    p = -0.000200214257;
    const double c[] = {0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                        -0.0076224613,  0.00943887047, 1.00167406,     2.83297682};
    for (const double a : c) p = a + p * w;
  } else {
    constexpr double root_of_pi = 2 * half_root_of_pi;
    const double exponent = -::log((1 - ::fabs(x)) * root_of_pi);
    p = ::sqrt(exponent - 0.5 * ::log(exponent));
  }
  double y = p * x;
  for (int step = 0; step < 2; ++step) {
    // Near the ends erfc keeps the digits that erf(y) - x loses.
    const double error = x > 0.5 ? (1 - x) - ::erfc(y) : x < -0.5 ? ::erfc(-y) - (1 + x) : ::erf(y) - x;
    const double ratio = error * half_root_of_pi * ::exp(y * y);
    y -= ratio / (1 + y * ratio);
  }
  return y;
}

#if !defined(__CUDACC__)
// The logarithm of |gamma(x)| without the global sign that the standard library's function writes.
inline double log_gamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);
}
inline float log_gamma(float x) {
  int sign = 0;
  return ::lgammaf_r(x, &sign);
}
#endif

}  // namespace levin::kernels::special
