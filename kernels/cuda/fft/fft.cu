// Fourier transforms: by cuFFT where it can be opened, else by their sums.
#include "kernels/cuda/fft/direct.cuh"

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/vendor/cufft.h"

#include <levin/kernels/fft.h>

namespace levin::kernels::cuda {

namespace {

using fft_direct::Kind;

constexpr int kFftThreads = 256;

template <class T>
fft_direct::Lines<T> lines_of(const FftArgs& a, Kind kind) {
  const std::int64_t per_line = kind == Kind::complex ? 2 * a.n : a.n;
  const TensorView& whole = kind == Kind::to_real ? a.out : a.x;
  const bool backward = kind == Kind::to_real || (kind == Kind::complex && a.inverse);
  return {a.x.data<T>(), a.out.data<T>(), whole.numel() / per_line, a.n, backward ? 1.0 : -1.0, a.scale};
}

template <class Kernel, class... Args>
void launch_over(Kernel kernel, std::int64_t n, Stream& stream, Args... args) {
  const auto blocks = static_cast<unsigned>(ceil_div(n, kFftThreads));
  launch(kernel, {.grid = blocks, .block = kFftThreads, .stream = stream}, args...);
}

template <Kind kind, class T>
void by_sums(const FftArgs& a, Stream& stream) {
  const auto lines = lines_of<T>(a, kind);
  launch_over(fft_direct::transform<kind, T>, kind == Kind::to_real ? a.out.numel() : a.out.numel() / 2, stream, lines);
}

template <Kind kind, class T>
void by_cufft(const FftArgs& a, Stream& stream) {
  auto lines = lines_of<T>(a, kind);
  const CufftCall call{kind == Kind::complex ? CufftKind::complex
                       : kind == Kind::to_half ? CufftKind::to_half
                                               : CufftKind::to_real,
                       sizeof(T) == 8, a.inverse, lines.n, lines.lines};
  const Scratch<T> copy(stream, kind == Kind::to_real ? a.x.numel() : 0);
  if (kind == Kind::to_real) {
    auto halves = lines;
    halves.out = copy.get();
    launch_over(fft_direct::copy_halves<T>, a.x.numel(), stream, halves);
    lines.x = copy.get();
  }
  run_cufft(call, lines.x, lines.out, stream);
  if (a.scale != 1) launch_over(fft_direct::multiply<T>, a.out.numel(), stream, lines.out, a.out.numel(), a.scale);
}

template <Kind kind>
void run(const char* op, const FftArgs& a, Stream& stream) {
  if (a.out.numel() == 0) return;
  const auto in_type = [&]<class T>() { has_cufft() ? by_cufft<kind, T>(a, stream) : by_sums<kind, T>(a, stream); };
  if (a.x.dtype == kFloat64) return in_type.template operator()<double>();
  if (a.x.dtype == kFloat32) return in_type.template operator()<float>();
  levin::detail::refuse_dtype(op, a.x.dtype, "float32 and float64");
}

}  // namespace

void fft(const FftArgs& a, Stream& stream) { run<Kind::complex>("fft", a, stream); }
void rfft(const FftArgs& a, Stream& stream) { run<Kind::to_half>("rfft", a, stream); }
void irfft(const FftArgs& a, Stream& stream) { run<Kind::to_real>("irfft", a, stream); }

}  // namespace levin::kernels::cuda
