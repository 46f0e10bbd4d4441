// Fourier transforms by Eigen's kissfft: radices 4, 2, 3 and 5, and sums of p terms for other prime factors p.

#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/fft.h>

#include <unsupported/Eigen/FFT>

#include <algorithm>
#include <complex>
#include <vector>

namespace levin::kernels {

namespace cpu {

namespace {

constexpr int64_t kGrain = 32768;     // operations per task
constexpr std::size_t kLengths = 16;  // tables of sines that a thread keeps

/// Returns the calling thread's transforms with their tables, which are made at the first use of a length.
template <class T>
::Eigen::internal::kissfft_impl<T>& transforms(int n) {
  thread_local ::Eigen::internal::kissfft_impl<T> impl;
  thread_local std::vector<int> lengths;
  if (std::find(lengths.begin(), lengths.end(), n) == lengths.end()) {
    if (lengths.size() == kLengths) {
      impl.clear();
      lengths.clear();
    }
    lengths.push_back(n);
  }
  return impl;
}

/// Calls f(impl, out, in) for each line of `in` elements, which becomes one of `out` elements, and scales it.
template <class T, class F>
void for_each_line(const FftArgs& a, int64_t in, int64_t out, F f) {
  const int64_t lines = a.x.numel() / in;
  const int64_t grain = std::max<int64_t>(1, kGrain / (8 * a.n));
  parallel_for(0, lines, grain, [&](int64_t begin, int64_t end) {
    auto& impl = transforms<T>(static_cast<int>(a.n));
    for (int64_t i = begin; i < end; ++i) {
      T* to = a.out.data<T>() + i * out;
      const T* from = a.x.data<T>() + i * in;
      if (a.n > 1) {
        f(impl, to, from);
      } else {  // one element is its own transform, and kissfft takes two or more
        to[0] = from[0];
        if (out == 2) to[1] = in == 2 ? from[1] : T(0);
      }
      if (a.scale != 1)
        for (int64_t k = 0; k < out; ++k) to[k] = static_cast<T>(to[k] * static_cast<T>(a.scale));
    }
  });
}

template <class T>
std::complex<T>* pairs(T* p) {
  return reinterpret_cast<std::complex<T>*>(p);
}
template <class T>
const std::complex<T>* pairs(const T* p) {
  return reinterpret_cast<const std::complex<T>*>(p);
}

template <class F>
void in_type(const char* op, const FftArgs& a, F f) {
  if (a.x.dtype != kFloat32 && a.x.dtype != kFloat64)
    levin::detail::refuse_dtype(op, a.x.dtype, "float32 and float64");
  if (a.out.numel() == 0) return;
  a.x.dtype == kFloat64 ? f.template operator()<double>() : f.template operator()<float>();
}

}  // namespace

void fft(const FftArgs& a, Stream&) {
  in_type("fft", a, [&]<class T>() {
    const int n = static_cast<int>(a.n);
    for_each_line<T>(a, 2 * a.n, 2 * a.n, [&](auto& impl, T* out, const T* x) {
      a.inverse ? impl.inv(pairs(out), pairs(x), n) : impl.fwd(pairs(out), pairs(x), n);
    });
  });
}

void rfft(const FftArgs& a, Stream&) {
  in_type("rfft", a, [&]<class T>() {
    for_each_line<T>(a, a.n, 2 * (a.n / 2 + 1), [&](auto& impl, T* out, const T* x) {
      impl.fwd(pairs(out), x, static_cast<int>(a.n));
    });
  });
}

void irfft(const FftArgs& a, Stream&) {
  in_type("irfft", a, [&]<class T>() {
    for_each_line<T>(a, 2 * (a.n / 2 + 1), a.n, [&](auto& impl, T* out, const T* x) {
      impl.inv(out, pairs(x), static_cast<int>(a.n));
    });
  });
}

}  // namespace cpu

LEVIN_KERNEL(FftArgs, fft, cpu::fft);
LEVIN_KERNEL(FftArgs, rfft, cpu::rfft);
LEVIN_KERNEL(FftArgs, irfft, cpu::irfft);

}  // namespace levin::kernels
