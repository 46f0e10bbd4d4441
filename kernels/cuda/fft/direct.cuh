#pragma once
// Fourier transforms by their sums, one thread for an element of the result: n terms each, accumulated in double. They
// serve where cuFFT is not installed.

#include "kernels/cuda/base/launch.h"

namespace levin::kernels::cuda::fft_direct {

enum class Kind { complex, to_half, to_real };

/// Lines of n complex or real elements, or of the n / 2 + 1 complex elements of a half.
template <class T>
struct Lines {
  const T* x;
  T* out;
  std::int64_t lines, n;
  double sign, scale;  ///< sign of the exponent

  __device__ std::int64_t half() const { return n / 2 + 1; }
};

/// cos and sin of 2 pi m / n.
struct Rotation {
  double c, s;
  __device__ Rotation(std::int64_t m, std::int64_t n, double sign) {
    constexpr double two_pi = 6.283185307179586;
    const double angle = sign * two_pi * static_cast<double>(m) / static_cast<double>(n);
    c = ::cos(angle);
    s = ::sin(angle);
  }
};

template <Kind kind, class T>
__global__ void transform(Lines<T> a) {
  const std::int64_t outputs = kind == Kind::to_half ? a.half() : a.n;
  const std::int64_t inputs = kind == Kind::to_real ? a.half() : a.n;
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.lines * outputs) return;
  const std::int64_t line = i / outputs, k = i % outputs;
  const T* x = a.x + line * inputs * (kind == Kind::to_half ? 1 : 2);
  double re = 0, im = 0;
  std::int64_t m = 0;  // j k mod n
  for (std::int64_t j = 0; j < inputs; ++j) {
    const Rotation w(m, a.n, a.sign);
    m += k;
    if (m >= a.n) m -= a.n;
    if (kind == Kind::to_half) {
      re += static_cast<double>(x[j]) * w.c;
      im += static_cast<double>(x[j]) * w.s;
      continue;
    }
    const double xr = static_cast<double>(x[2 * j]), xi = static_cast<double>(x[2 * j + 1]);
    if (kind == Kind::complex) {
      re += xr * w.c - xi * w.s;
      im += xr * w.s + xi * w.c;
    } else if (j == 0 || 2 * j == a.n) {
      re += xr * w.c;  // stands alone, and its imaginary part is not read
    } else {
      re += 2 * (xr * w.c - xi * w.s);
    }
  }
  if (kind == Kind::to_real) {
    a.out[i] = static_cast<T>(re * a.scale);
  } else {
    a.out[2 * i] = static_cast<T>(re * a.scale);
    a.out[2 * i + 1] = static_cast<T>(im * a.scale);
  }
}

/// Multiplies n elements.
template <class T>
__global__ void multiply(T* x, std::int64_t n, double factor) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) x[i] = static_cast<T>(static_cast<double>(x[i]) * factor);
}

/// Copies halves of spectra, with 0 for the imaginary parts that stand for nothing: cuFFT reads them, and may overwrite
/// its input.
template <class T>
__global__ void copy_halves(Lines<T> a) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= a.lines * a.half() * 2) return;
  const std::int64_t k = i / 2 % a.half();
  a.out[i] = i % 2 == 1 && (k == 0 || 2 * k == a.n) ? T(0) : a.x[i];
}

}  // namespace levin::kernels::cuda::fft_direct
