#include "elementwise/rows.h"
#include "kernels/cpu/copy.h"
#include "kernels/src/table.h"

#include <levin/core/parallel.h>
#include <levin/kernels/creation.h>

#include <cstring>

namespace levin::kernels {

namespace cpu {

namespace {

void fill(const FillArgs& a, Stream& stream) {
  const TensorView& v = a.value;
  const int64_t bytes = size_of(v.dtype);
  bool zero = v.dtype == a.out.dtype && a.out.is_contiguous();
  for (int64_t i = 0; zero && i < bytes; ++i) zero = v.data<std::byte>()[i] == std::byte{0};
  if (!zero) return cpu::copy({a.out, v}, stream);
  std::byte* out = static_cast<std::byte*>(a.out.pointer);
  parallel_for(0, a.out.numel() * bytes, kGrain * 8, [out](int64_t b, int64_t e) {
    std::memset(out + b, 0, static_cast<std::size_t>(e - b));
  });
}

/// Computes out[i] = f(i), given as double or int64.
template <class F>
void generate(const TensorView& out, const char* op, F&& f) {
  dispatch_numeric(out.dtype, op, [&]<class T>() {
    T* to = static_cast<T*>(out.pointer);
    parallel_for(0, out.numel(), kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) to[i] = static_cast<T>(f.template operator()<T>(i));
    });
  });
}

void arange(const RangeArgs& a, Stream&) {
  generate(a.out, "arange", [&]<class T>(int64_t i) {
    if constexpr (std::is_integral_v<T>) {
      return a.integer_start + i * a.integer_step;
    } else {
      return a.start + static_cast<double>(i) * a.step;
    }
  });
}

void linspace(const LinspaceArgs& a, Stream&) {
  const int64_t n = a.out.numel();
  const double step = n > 1 ? (a.end - a.start) / static_cast<double>(n - 1) : 0.0;
  generate(a.out, "linspace", [&]<class T>(int64_t i) {
    return i < (n + 1) / 2 ? a.start + static_cast<double>(i) * step : a.end - static_cast<double>(n - 1 - i) * step;
  });
}

}  // namespace

}  // namespace cpu

LEVIN_KERNEL(FillArgs, fill, cpu::fill);
LEVIN_KERNEL(RangeArgs, arange, cpu::arange);
LEVIN_KERNEL(LinspaceArgs, linspace, cpu::linspace);

}  // namespace levin::kernels
