// Windows, short-time Fourier transforms and mel filters: compositions.

#include "../../errors.h"
#include "../elementwise/common.h"
#include "../values.h"
#include "complex.h"

#include <levin/autograd/ops/complex.h>
#include <levin/autograd/ops/creation.h>
#include <levin/autograd/ops/elementwise.h>
#include <levin/autograd/ops/indexing.h>
#include <levin/autograd/ops/matmul.h>
#include <levin/autograd/ops/rearrange.h>
#include <levin/autograd/ops/reduce.h>
#include <levin/autograd/ops/spectral.h>
#include <levin/autograd/ops/view.h>
#include <levin/autograd/trace.h>
#include <levin/core/warning.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace levin {

using namespace ops;

namespace {

constexpr double kPi = std::numbers::pi;

/// Returns f(i / (m - 1)) for i < n, where m is n for a symmetric window and n + 1 for a periodic one, in double.
template <class F>
Tensor window_of(const char* op, int64_t n, bool periodic, const TensorOptions& options, F f) {
  if (n < 0) fail<ValueError>("[{}] a window of {} elements is impossible; use 0 or more.", op, n);
  TensorOptions chosen = options;
  chosen.dtype = options.dtype.value_or(default_dtype());
  if (!is_floating(*chosen.dtype))
    fail<DTypeError>("[{}] {} is not accepted, only floating types; use .dtype = kFloat32.", op, *chosen.dtype);
  const double last = static_cast<double>(periodic ? n : n - 1);
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(n == 1 ? 1.0 : f(static_cast<double>(i) / last));
  return from_data(values, {n}, chosen);
}

/// Lengths of a short-time transform, checked.
struct Frames {
  int64_t n_fft, hop, win;
  Tensor window;  ///< (n_fft), of x's type; undefined for ones

  template <class Options>
  Frames(const char* op, int64_t n, const Options& o, const Tensor& x)
      : n_fft(n), hop(o.hop_length.value_or(n / 4)), win(o.win_length.value_or(n)) {
    if (n_fft < 1) fail<ValueError>("[{}] n_fft is {}; use 1 or more.", op, n_fft);
    if (hop < 1) fail<ValueError>("[{}] hop_length is {}; use 1 or more.", op, hop);
    if (win < 1 || win > n_fft) fail<ValueError>("[{}] win_length is {}; use 1 to n_fft, which is {}.", op, win, n_fft);
    window = o.window;
    if (window.defined() && window.sizes() != Shape{win})
      fail<ShapeError>("[{}] the window is {}, and ({},) is needed; change it or win_length.", op, window.sizes(), win);
    if (!window.defined() && win < n_fft)
      window = ones({win}, {.dtype = real_type_of(x.dtype()), .device = x.device()});
    if (window.defined() && win < n_fft) window = pad(window, {(n_fft - win) / 2, n_fft - win - (n_fft - win) / 2});
  }
};

/// Adds frames (B, T, n) at distance `hop` into signals (B, n + hop (T - 1)).
Tensor overlap_add(const Tensor& frames, int64_t hop) {
  const int64_t batch = frames.size(0), count = frames.size(1), n = frames.size(2);
  const Tensor places = add(unsqueeze(mul(arange(count), hop), 1), arange(n));
  return index_add(zeros({batch, n + hop * (count - 1)}, like(frames)), 1,
                   reshape(places, {-1}).to(frames.device()), reshape(frames, {batch, count * n}));
}

}  // namespace

Tensor hann_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("hann_window", n, periodic, options, [](double t) { return 0.5 - 0.5 * std::cos(2 * kPi * t); });
}
Tensor hamming_window(int64_t n, bool periodic, double alpha, double beta, const TensorOptions& options) {
  return window_of("hamming_window", n, periodic, options,
                   [&](double t) { return alpha - beta * std::cos(2 * kPi * t); });
}
Tensor blackman_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("blackman_window", n, periodic, options, [](double t) {
    return 0.42 - 0.5 * std::cos(2 * kPi * t) + 0.08 * std::cos(4 * kPi * t);
  });
}
Tensor bartlett_window(int64_t n, bool periodic, const TensorOptions& options) {
  return window_of("bartlett_window", n, periodic, options, [](double t) { return 1 - std::abs(2 * t - 1); });
}

Tensor stft(const Tensor& x, int64_t n_fft, const StftOptions& o) {
  if (x.dim() != 1 && x.dim() != 2) fail<ShapeError>("[stft] x is {}; (length) or (B, length) is needed.", x.sizes());
  const Frames f("stft", n_fft, o, x);
  const bool whole = x.is_complex() || (f.window.defined() && f.window.is_complex());
  if (whole && o.onesided.value_or(false))
    throw ValueError("[stft] onesided needs a real x and a real window: others have no conjugate half. Leave it out.");
  Tensor signal = x.dim() == 1 ? unsqueeze(x, 0) : x;
  if (o.center) signal = pad(signal, {n_fft / 2, n_fft / 2}, o.pad_mode);
  if (n_fft > signal.size(1))
    fail<ValueError>("[stft] n_fft is {}, more than the {} samples of x; use a smaller one, or pad x.", n_fft,
                     signal.size(1));
  Tensor frames = unfold(signal, 1, n_fft, f.hop);  // (B, T, n_fft)
  if (f.window.defined()) frames = mul(frames, f.window);
  const fft::Norm norm = o.normalized ? fft::Norm::ortho : fft::Norm::backward;
  const Tensor spectra = !whole && o.onesided.value_or(true) ? fft::rfft(frames, std::nullopt, -1, norm)
                                                             : fft::fft(frames, std::nullopt, -1, norm);
  const Tensor y = transpose(spectra, 1, 2), z = x.dim() == 1 ? squeeze(y, 0) : y;
  return o.return_complex ? z : view_as_real(z);
}

namespace {

void check_istft(const Tensor& z, int64_t n_fft, const IstftOptions& o, bool onesided) {
  if (!z.is_complex() || (z.dim() != 2 && z.dim() != 3))
    fail<ShapeError>("[istft] z is {} {}; complex (N, T) or (B, N, T) is needed.", z.dtype(), z.sizes());
  if (z.numel() == 0) fail<ShapeError>("[istft] z is {} and has no frames.", z.sizes());
  const int64_t expected = onesided ? n_fft / 2 + 1 : n_fft;
  if (z.size(-2) != expected)
    fail<ShapeError>("[istft] z has {} frequencies; n_fft = {} needs {}.", z.size(-2), n_fft, expected);
  if (o.return_complex && onesided)
    throw ValueError("[istft] a complex result needs both halves of the spectrum; use onesided = false.");
}

}  // namespace

Tensor istft(const Tensor& z, int64_t n_fft, const IstftOptions& o) {
  const bool onesided = o.onesided.value_or(z.dim() >= 2 && z.size(-2) != n_fft);
  check_istft(z, n_fft, o, onesided);
  const Frames f("istft", n_fft, o, z);
  const fft::Norm norm = o.normalized ? fft::Norm::ortho : fft::Norm::backward;
  const Tensor spectra = transpose(z.dim() == 2 ? unsqueeze(z, 0) : z, 1, 2);  // (B, T, N)
  const Tensor frames = o.return_complex ? fft::ifft(spectra, std::nullopt, -1, norm)
                                         : fft::irfft(narrow(spectra, -1, 0, n_fft / 2 + 1), n_fft, -1, norm);
  const TensorOptions parts{.dtype = real_type_of(z.dtype()), .device = z.device()};
  const Tensor window = f.window.defined() ? f.window : ones({n_fft}, parts);
  const Tensor sums = overlap_add(mul(frames, window), f.hop);
  const Tensor weights = overlap_add(expand(square(window), {1, frames.size(1), n_fft}), f.hop);

  const int64_t total = sums.size(1), start = o.center ? n_fft / 2 : 0;
  const int64_t wanted = o.length ? start + *o.length : total - start, end = std::min(wanted, total);
  if (end <= start)
    fail<ValueError>("[istft] {} samples of frames leave none after {}; give more frames.", total, start);
  const Tensor weight = narrow(weights, 1, start, end - start);
  if (amin(abs(weight).detach()).item<double>() < 1e-11)
    throw ValueError("[istft] the windows leave a gap: their squares add up to 0 at a sample. Use a smaller hop_length "
                     "or another window.");
  Tensor y = div(narrow(sums, 1, start, end - start), weight);
  if (wanted > total) y = pad(y, {0, wanted - total});
  return z.dim() == 2 ? squeeze(y, 0) : y;
}

namespace {

constexpr double kSlaneyStep = 200.0 / 3, kLogStart = 1000;  // Hz per mel below, and where the logarithm begins
const double kLogStep = std::log(6.4) / 27;

double to_mel(double hz, MelScale scale) {
  if (scale == MelScale::htk) return 2595 * std::log10(1 + hz / 700);
  return hz < kLogStart ? hz / kSlaneyStep : kLogStart / kSlaneyStep + std::log(hz / kLogStart) / kLogStep;
}

double to_hz(double mel, MelScale scale) {
  if (scale == MelScale::htk) return 700 * (std::pow(10, mel / 2595) - 1);
  constexpr double start = kLogStart / kSlaneyStep;
  return mel < start ? mel * kSlaneyStep : kLogStart * std::exp(kLogStep * (mel - start));
}

}  // namespace

Tensor melscale_fbanks(int64_t n_freqs, double f_min, double f_max, int64_t n_mels, int64_t sample_rate, MelNorm norm,
                       MelScale scale, const TensorOptions& options) {
  if (n_freqs < 2 || n_mels < 1)
    fail<ValueError>("[melscale_fbanks] {} frequencies and {} bands; use 2 and 1 at least.", n_freqs, n_mels);
  if (!(f_min >= 0 && f_min < f_max))
    fail<ValueError>("[melscale_fbanks] no band lies between {} and {} Hz; use 0 <= f_min < f_max.", f_min, f_max);
  std::vector<double> edges;  // in Hz
  const double low = to_mel(f_min, scale), high = to_mel(f_max, scale);
  for (int64_t m = 0; m < n_mels + 2; ++m)
    edges.push_back(to_hz(low + (high - low) * static_cast<double>(m) / static_cast<double>(n_mels + 1), scale));
  std::vector<double> filters(static_cast<std::size_t>(n_freqs * n_mels));
  std::vector<bool> used(static_cast<std::size_t>(n_mels));
  for (int64_t i = 0; i < n_freqs; ++i) {
    const double hz = static_cast<double>(sample_rate / 2) * static_cast<double>(i) / static_cast<double>(n_freqs - 1);
    for (std::size_t m = 0; m < used.size(); ++m) {
      const double left = edges[m], middle = edges[m + 1], right = edges[m + 2];
      const double rising = (hz - left) / (middle - left), falling = (right - hz) / (right - middle);
      const double height = norm == MelNorm::slaney ? 2 / (right - left) : 1.0;
      const double value = std::max(0.0, std::min(rising, falling)) * height;
      filters[static_cast<std::size_t>(i) * used.size() + m] = value;
      used[m] = used[m] || value > 0;
    }
  }
  if (std::find(used.begin(), used.end(), false) != used.end())
    warn_once(fmt::format("[melscale_fbanks] a band of {} holds none of the {} frequencies and is always 0; use fewer "
                          "bands or more frequencies.", n_mels, n_freqs));
  TensorOptions chosen = options;
  chosen.dtype = options.dtype.value_or(default_dtype());
  return from_data(filters, {n_freqs, n_mels}, chosen);
}

namespace {

struct WindowedFrames {
  int64_t n_fft, hop;
  Tensor window;

  /// The transforms of x (B, length), (B, T, n_fft / 2 + 1).
  Tensor spectra(const Tensor& x) const {
    return transpose(stft(x, n_fft, {.hop_length = hop, .win_length = window.size(0), .window = window}), 1, 2);
  }
};

/// Returns the squared magnitudes of the transforms.
Tensor power_spectrum(const Tensor& x, const WindowedFrames& f) {
  LEVIN_TRACE_CALL(power_spectrum(x, f), "power_spectrum", {x, f.window}, {{"n_fft", f.n_fft}, {"hop", f.hop}});
  const Tensor spectra = f.spectra(x), parts = view_as_real(spectra);
  return add(square(select(parts, -1, 0)), square(select(parts, -1, 1)));
}

}  // namespace

Tensor mel_spectrogram(const Tensor& waveform, const MelOptions& o) {
  check_floating("mel_spectrogram", waveform, "waveform");
  if (waveform.dim() == 0) throw ShapeError("[mel_spectrogram] the waveform has no axis of samples; reshape it.");
  const int64_t win = o.win_length.value_or(o.n_fft), hop = o.hop_length.value_or(win / 2);
  const TensorOptions options = like(waveform);
  const WindowedFrames frames{o.n_fft, hop, hann_window(win, true, options)};
  const Tensor x = reshape(waveform, {-1, waveform.size(-1)});
  const Tensor power = o.power == 2 ? power_spectrum(x, frames) : pow(abs(frames.spectra(x)), o.power);
  const double f_max = o.f_max.value_or(static_cast<double>(o.sample_rate / 2));
  const Tensor filters =
      melscale_fbanks(o.n_fft / 2 + 1, o.f_min, f_max, o.n_mels, o.sample_rate, o.norm, o.scale, options);
  const Tensor bands = transpose(matmul(power, filters), 1, 2);
  return reshape(bands, joined(leading(waveform, 1), {o.n_mels, bands.size(2)}));
}

}  // namespace levin
