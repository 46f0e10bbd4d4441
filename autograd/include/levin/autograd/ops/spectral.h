#pragma once
// Discrete Fourier transforms (torch.fft), short-time transforms, windows and mel filters. Types: float32 and float64,
// complex64 and complex128; integers are converted to the default type.

#include <levin/autograd/ops/rearrange.h>

namespace levin {

namespace fft {

/// How a transform over n elements is scaled.
enum class Norm {
  backward,  ///< the inverse by 1/n
  ortho,     ///< both by 1/sqrt(n)
  forward,   ///< the forward transform by 1/n
};

/// Returns y with y[k] = sum over j of x[j] exp(-2 pi i j k / n) along an axis, complex. `n` is the length, to which x
/// is cut or filled with zeros; any length of 1 or more, primes included. On the CPU the time is n times the sum of n's
/// prime factors (Cooley and Tukey, 1965). Throws ValueError for a length below 1.
Tensor fft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);
/// Returns the inverse, with exp(+2 pi i j k / n).
Tensor ifft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);
/// Returns the first n / 2 + 1 elements of the transform of a real x; the others are their conjugates.
Tensor rfft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);
/// Returns the inverse of rfft, real with n elements, 2 (size - 1) by default. The imaginary parts of the first
/// element, and of the last of an even n, are not read.
Tensor irfft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);
/// Returns the real transform of a Hermitian x of which half is given: irfft of the conjugates, scaled as forward.
Tensor hfft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);
/// Returns the inverse of hfft.
Tensor ihfft(const Tensor& x, std::optional<int64_t> n = std::nullopt, int64_t dim = -1, Norm norm = Norm::backward);

// Transforms along several axes. `s` are the lengths, -1 for an axis that keeps its own; without `dim` they belong to
// the last axes, and without both all axes are transformed. rfftn and irfftn are real along the last of the axes. Throw
// ShapeError if the numbers of lengths and axes differ.
Tensor fftn(const Tensor& x, const Shape& s = {},
            const Axes& dim = {}, Norm norm = Norm::backward);
Tensor ifftn(const Tensor& x, const Shape& s = {},
             const Axes& dim = {}, Norm norm = Norm::backward);
Tensor rfftn(const Tensor& x, const Shape& s = {},
             const Axes& dim = {}, Norm norm = Norm::backward);
Tensor irfftn(const Tensor& x, const Shape& s = {},
              const Axes& dim = {}, Norm norm = Norm::backward);
Tensor fft2(const Tensor& x, const Shape& s = {}, const Axes& dim = {-2, -1},
            Norm norm = Norm::backward);
Tensor ifft2(const Tensor& x, const Shape& s = {}, const Axes& dim = {-2, -1},
             Norm norm = Norm::backward);
Tensor rfft2(const Tensor& x, const Shape& s = {}, const Axes& dim = {-2, -1},
             Norm norm = Norm::backward);
Tensor irfft2(const Tensor& x, const Shape& s = {}, const Axes& dim = {-2, -1},
              Norm norm = Norm::backward);

/// Returns the frequencies (0, 1, ..., -2, -1) / (n d) of fft's elements, for samples at distance d.
Tensor fftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
/// Returns the frequencies (0, 1, ..., n / 2) / (n d) of rfft's elements.
Tensor rfftfreq(int64_t n, double d = 1.0, const TensorOptions& options = {});
/// Moves the zero frequency to the middle of the axes, all by default.
Tensor fftshift(const Tensor& x, const Axes& dim = {});
/// Undoes fftshift.
Tensor ifftshift(const Tensor& x, const Axes& dim = {});

}  // namespace fft

/// Windows of n elements: with t from 0 to 1, 0.5 - 0.5 cos(2 pi t), alpha - beta cos(2 pi t),
/// 0.42 - 0.5 cos(2 pi t) + 0.08 cos(4 pi t), and 1 - |2 t - 1|. A periodic one is the symmetric one of n + 1 elements
/// without its last. Throw ValueError for a negative n.
Tensor hann_window(int64_t n, bool periodic = true, const TensorOptions& options = {});
Tensor hamming_window(int64_t n, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                      const TensorOptions& options = {});
Tensor blackman_window(int64_t n, bool periodic = true, const TensorOptions& options = {});
Tensor bartlett_window(int64_t n, bool periodic = true, const TensorOptions& options = {});

/// Arguments of stft beside n_fft, as torch.stft's.
struct StftOptions {
  std::optional<int64_t> hop_length{};  ///< distance of the frames; n_fft / 4 by default
  std::optional<int64_t> win_length{};  ///< n_fft by default; a shorter window is filled with zeros on both sides
  Tensor window{};                      ///< (win_length); ones by default
  bool center = true;                   ///< pads n_fft / 2 on both sides, so that frame t is centred at t * hop_length
  PadMode pad_mode = PadMode::reflect;  ///< values of that padding
  bool normalized = false;              ///< scales by 1 / sqrt(n_fft)
  std::optional<bool> onesided{};       ///< the first n_fft / 2 + 1 frequencies: true unless x or window is complex
  bool return_complex = true;           ///< otherwise the result is real, with a last axis of two
};
/// Returns the Fourier transforms of overlapping frames of x, (length) or (B, length), times a window: shape
/// (B, n_fft / 2 + 1, frames). Throws ValueError and ShapeError for lengths that do not fit.
Tensor stft(const Tensor& x, int64_t n_fft, const StftOptions& options = {});

/// Arguments of istft beside n_fft, as torch.istft's.
struct IstftOptions {
  /// As those of the stft that is inverted.
  std::optional<int64_t> hop_length{}, win_length{};
  Tensor window{};
  bool center = true, normalized = false;
  std::optional<bool> onesided{};   ///< by default true if the number of frequencies is not n_fft
  std::optional<int64_t> length{};  ///< length of the result, which is cut or filled with zeros
  bool return_complex = false;      ///< the signal is complex; needs all frequencies (onesided = false)
};
/// Returns the signal whose stft is nearest to z, (N, T) or (B, N, T) complex, in the least-squares sense (Griffin and
/// Lim, 1984). Throws ValueError where the windows leave a gap.
Tensor istft(const Tensor& z, int64_t n_fft, const IstftOptions& options = {});

/// The mel scales of the programs HTK and Auditory Toolbox (Slaney).
enum class MelScale { htk, slaney };
/// Normalization of mel filters: none, or a division by the width of each band.
enum class MelNorm { none, slaney };
/// Returns torchaudio's triangular filters on the mel scale, (n_freqs, n_mels): mul(spectrogram^T, filters) sums the
/// power at n_freqs frequencies from 0 to sample_rate / 2 in n_mels bands from f_min to f_max. `htk` is
/// 2595 log10(1 + f / 700), `slaney` is linear up to 1000 Hz; the norm slaney divides by the width of each band.
Tensor melscale_fbanks(int64_t n_freqs, double f_min, double f_max, int64_t n_mels, int64_t sample_rate,
                       MelNorm norm = MelNorm::none, MelScale scale = MelScale::htk, const TensorOptions& options = {});

/// Arguments of mel_spectrogram, as those of torchaudio's MelSpectrogram.
struct MelOptions {
  int64_t sample_rate = 16000;          ///< samples per second
  int64_t n_fft = 400;                  ///< samples of a transform
  std::optional<int64_t> win_length{};  ///< samples of the window; n_fft by default
  std::optional<int64_t> hop_length{};  ///< samples between frames; half of win_length by default
  double f_min = 0.0;                   ///< lower end of the lowest band, in Hz
  std::optional<double> f_max{};        ///< upper end of the highest band, in Hz; half of sample_rate by default
  int64_t n_mels = 128;                 ///< number of bands
  double power = 2.0;                   ///< exponent of the magnitudes
  MelNorm norm = MelNorm::none;         ///< as in melscale_fbanks
  MelScale scale = MelScale::htk;       ///< as in melscale_fbanks
};
/// Returns the mel spectrogram (..., n_mels, frames) of waveforms (..., length), with a periodic Hann window and
/// centred frames.
Tensor mel_spectrogram(const Tensor& waveform, const MelOptions& options = {});

}  // namespace levin
