#include "cases/cases.h"
#include "cases/composed/composition.h"

#include <fmt/format.h>

#include <cmath>
#include <complex>
#include <numbers>

namespace levin::test {

namespace {

std::string real_view(const std::string& expression) { return "torch.view_as_real(" + expression + ")"; }

OpCase short_time() {
  const std::string window = "window=torch.hann_window(8, dtype=x0.dtype), return_complex=True";
  OpCase c = composition(
      "stft",
      {call(real_view("torch.stft(x0, 8, " + window + ")"), {input({2, 21})},
            LEVIN_CALL(view_as_real(stft(x0, 8, {.window = hann_window(8, true, like(x0))}))), 8),
       call(real_view("torch.stft(x0, 8, 3, center=False, onesided=False, " + window + ")"), {input({19})},
            LEVIN_CALL(view_as_real(stft(
                x0, 8,
                {.hop_length = 3, .window = hann_window(8, true, like(x0)), .center = false, .onesided = false}))),
            8),
       call("torch.stft(x0, 9, 4, 6, torch.hamming_window(6, dtype=x0.dtype), pad_mode='constant', normalized=True, "
            "return_complex=False)",
            {input({2, 17})},
            LEVIN_CALL(stft(x0, 9,
                            {.hop_length = 4,
                             .win_length = 6,
                             .window = hamming_window(6, true, 0.54, 0.46, like(x0)),
                             .pad_mode = PadMode::constant,
                             .normalized = true,
                             .return_complex = false})),
            9),
       call(real_view("torch.stft(x0, 6, 2, 4, pad_mode='circular', return_complex=True)"), {input({1, 12})},
            LEVIN_CALL(view_as_real(stft(x0, 6, {.hop_length = 2, .win_length = 4, .pad_mode = PadMode::circular}))),
            6),
       call(real_view("torch.stft(x0, 6, 2, window=x1, return_complex=True)"), {input({12}), input({6})},
            LEVIN_CALL(view_as_real(stft(x0, 6, {.hop_length = 2, .window = x1}))), 6),
       call(real_view("torch.stft(torch.view_as_complex(x0.contiguous()), 4, 2, pad_mode='constant', "
                      "return_complex=True)"),
            {input({9, 2})},
            LEVIN_CALL(view_as_real(
                stft(view_as_complex(x0.clone()), 4, {.hop_length = 2, .pad_mode = PadMode::constant}))),
            4)});
  return with_errors(
      c, {{"[stft] x is (2, 3, 4); (length) or (B, length) is needed", [] { stft(ones({2, 3, 4}), 2); }},
          {"[stft] n_fft is 0; use 1 or more", [] { stft(ones({9}), 0); }},
          {"[stft] hop_length is 0; use 1 or more", [] { stft(ones({9}), 4, {.hop_length = 0}); }},
          {"[stft] win_length is 5; use 1 to n_fft, which is 4", [] { stft(ones({9}), 4, {.win_length = 5}); }},
          {"[stft] the window is (3,), and (4,) is needed", [] { stft(ones({9}), 4, {.window = ones({3})}); }},
          {"[stft] n_fft is 10, more than the 9 samples of x", [] { stft(ones({9}), 10, {.center = false}); }},
          {"[stft] onesided needs a real x", [] { stft(ones({9}, kComplex64), 4, {.onesided = true}); }}});
}

OpCase inverse_short_time() {
  const std::string z = "torch.view_as_complex(x0.contiguous())";
  OpCase c = composition(
      "istft",
      {call("torch.istft(" + z + ", 8, 2, window=torch.hann_window(8, dtype=x0.dtype))", {input({2, 5, 6, 2})},
            LEVIN_CALL(istft(view_as_complex(x0.clone()), 8,
                             {.hop_length = 2, .window = hann_window(8, true, like(x0))})),
            8),
       call("torch.istft(" + z + ", 6, 3, normalized=True, onesided=False, length=14)", {input({6, 5, 2})},
            LEVIN_CALL(istft(view_as_complex(x0.clone()), 6,
                             {.hop_length = 3, .normalized = true, .onesided = false, .length = 14})),
            6),
       call("torch.istft(" + z + ", 6, 2, center=False, length=10)", {input({4, 4, 2})},
            LEVIN_CALL(
                istft(view_as_complex(x0.clone()), 6, {.hop_length = 2, .center = false, .length = 10})),
            6),
       call(real_view("torch.istft(" + z + ", 4, 2, onesided=False, return_complex=True)"), {input({4, 5, 2})},
            LEVIN_CALL(view_as_real(istft(view_as_complex(x0.clone()), 4,
                                          {.hop_length = 2, .onesided = false, .return_complex = true}))),
            4),
       call("torch.istft(torch.stft(x0, 8, 2, window=torch.hann_window(8, dtype=x0.dtype), return_complex=True), 8, 2, "
            "window=torch.hann_window(8, dtype=x0.dtype), length=15)",
            {input({15})},
            LEVIN_CALL(istft(stft(x0, 8, {.hop_length = 2, .window = hann_window(8, true, like(x0))}), 8,
                             {.hop_length = 2, .window = hann_window(8, true, like(x0)), .length = 15})),
            8)});
  const auto half = [](int64_t frequencies) { return ones({frequencies, 3}, kComplex64); };
  c = with_own_values(std::move(c));  // sums of numbers of different sizes cancel
  return with_errors(
      c, {{"[istft] z is float32 (5, 3); complex (N, T) or (B, N, T) is needed", [] { istft(ones({5, 3}), 8); }},
          {"[istft] z has 4 frequencies; n_fft = 8 needs 5", [=] { istft(half(4), 8); }},
          {"[istft] z is (5, 0) and has no frames", [] { istft(ones({5, 0}, kComplex64), 8); }},
          {"[istft] a complex result needs both halves", [=] { istft(half(5), 8, {.return_complex = true}); }},
          {"[istft] the windows leave a gap",
           [=] { istft(half(5), 8, {.hop_length = 8, .window = hann_window(8), .center = false}); }},
          {"[istft] 8 samples of frames leave none after 4", [] {
             istft(ones({5, 1}, kComplex64), 8, {.hop_length = 2});
           }}});
}

/// Values without inputs: x0 gives the type.
OpCase windows() {
  const auto of = [](const std::string& torch, Call c) { return call(torch, {constant({2})}, std::move(c)); };
  OpCase c = composition(
      "windows",
      {of("torch.hann_window(7, dtype=x0.dtype)", LEVIN_CALL(hann_window(7, true, like(x0)))),
       of("torch.hann_window(8, False, dtype=x0.dtype)", LEVIN_CALL(hann_window(8, false, like(x0)))),
       of("torch.hann_window(1, dtype=x0.dtype)", LEVIN_CALL(hann_window(1, true, like(x0)))),
       of("torch.hamming_window(7, dtype=x0.dtype)", LEVIN_CALL(hamming_window(7, true, 0.54, 0.46, like(x0)))),
       of("torch.hamming_window(6, False, 0.5, 0.4, dtype=x0.dtype)",
          LEVIN_CALL(hamming_window(6, false, 0.5, 0.4, like(x0)))),
       of("torch.blackman_window(7, dtype=x0.dtype)", LEVIN_CALL(blackman_window(7, true, like(x0)))),
       of("torch.bartlett_window(7, dtype=x0.dtype)", LEVIN_CALL(bartlett_window(7, true, like(x0)))),
       of("torch.bartlett_window(7, False, dtype=x0.dtype)", LEVIN_CALL(bartlett_window(7, false, like(x0)))),
       of("torch.fft.fftfreq(8, 0.5, dtype=x0.dtype)", LEVIN_CALL(fft::fftfreq(8, 0.5, like(x0)))),
       of("torch.fft.fftfreq(7, dtype=x0.dtype)", LEVIN_CALL(fft::fftfreq(7, 1.0, like(x0)))),
       of("torch.fft.rfftfreq(7, 0.1, dtype=x0.dtype)", LEVIN_CALL(fft::rfftfreq(7, 0.1, like(x0))))});
  return without_gradient(
      with_errors(c, {{"[hann_window] a window of -1 elements is impossible", [] { hann_window(-1); }},
                      {"[bartlett_window] int64 is not accepted, only floating types",
                       [] { bartlett_window(4, true, {.dtype = kInt64}); }},
                      {"[fftfreq] -2 samples are fewer than none", [] { fft::fftfreq(-2); }}}));
}

struct Mel {
  bool slaney_scale, slaney_norm;
  double f_min, f_max;
  int64_t n_freqs, n_mels, sample_rate;
};

/// The published formulas: O'Shaughnessy's scale (htk), Slaney's Auditory Toolbox (1998), and triangles between the
/// bands' edges.
std::vector<double> mel_filters(const Mel& m) {
  const double step = std::log(6.4) / 27;
  const auto mel = [&](double f) {
    if (!m.slaney_scale) return 1127.01048033416 * std::log(1 + f / 700);
    return f < 1000 ? 3 * f / 200 : 15 + std::log(f / 1000) / step;
  };
  const auto hz = [&](double x) {
    if (!m.slaney_scale) return 700 * std::expm1(x / 1127.01048033416);
    return x < 15 ? 200 * x / 3 : 1000 * std::exp((x - 15) * step);
  };
  const auto edge = [&](int64_t i) {
    const double share = static_cast<double>(i) / static_cast<double>(m.n_mels + 1);
    return hz((1 - share) * mel(m.f_min) + share * mel(m.f_max));
  };
  std::vector<double> y;
  for (int64_t i = 0; i < m.n_freqs; ++i)
    for (int64_t k = 0; k < m.n_mels; ++k) {
      const double f = static_cast<double>(m.sample_rate) / 2 * static_cast<double>(i) /
                       static_cast<double>(m.n_freqs - 1);
      const double a = edge(k), b = edge(k + 1), c = edge(k + 2);
      const double triangle = f <= a || f >= c ? 0 : f <= b ? (f - a) / (b - a) : (c - f) / (c - b);
      y.push_back(triangle * (m.slaney_norm ? 2 / (c - a) : 1));
    }
  return y;
}

Sample filters_sample(const Mel& m) {
  Sample s{.inputs = {constant({1})}};
  s.torch = "-";
  s.code = fmt::format("melscale_fbanks({}, {}, {}, {}, {}, ...)", m.n_freqs, m.f_min, m.f_max, m.n_mels,
                       m.sample_rate);
  s.op = [=](const Tensors& x) -> Tensors {
    return {melscale_fbanks(m.n_freqs, m.f_min, m.f_max, m.n_mels, m.sample_rate,
                            m.slaney_norm ? MelNorm::slaney : MelNorm::none,
                            m.slaney_scale ? MelScale::slaney : MelScale::htk, like(x[0]))};
  };
  s.reference = [=](const Tensors&) -> Tensors { return {from_data(mel_filters(m), {m.n_freqs, m.n_mels})}; };
  return s;
}

OpCase mel_banks() {
  OpCase c{.name = "melscale_fbanks"};
  c.samples = {filters_sample({false, false, 0, 8000, 201, 40, 16000}),
               filters_sample({true, false, 0, 8000, 201, 40, 16000}),
               filters_sample({true, true, 20, 7600, 257, 80, 16000}),
               filters_sample({false, true, 300, 3000, 65, 6, 8000})};
  c.op = c.samples[0].op;
  c.outputs = {Output::any};
  c.tolerance = {.ulps = 4, .scale = 20};  // the constant of the logarithm has 15 digits
  c.differentiable = false;
  c.errors = {{"[melscale_fbanks] 1 frequencies and 4 bands", [] { melscale_fbanks(1, 0, 10, 4, 100); }},
              {"[melscale_fbanks] no band lies between 50 and 20 Hz", [] { melscale_fbanks(9, 50, 20, 4, 100); }}};
  return c;
}

/// Frames of the signal, mirrored at its ends, times a Hann window; their power in mel bands.
std::vector<double> mel_reference(const std::vector<double>& x, int64_t n_fft, int64_t hop, const Mel& m) {
  const auto n = static_cast<int64_t>(x.size()), frames = 1 + n / hop, half = n_fft / 2;
  const std::vector<double> filters = mel_filters(m);
  std::vector<double> y(static_cast<std::size_t>(m.n_mels * frames));
  for (int64_t t = 0; t < frames; ++t)
    for (int64_t k = 0; k <= half; ++k) {
      std::complex<double> z;
      for (int64_t i = 0; i < n_fft; ++i) {
        int64_t at = std::abs(t * hop + i - half);
        if (at >= n) at = 2 * (n - 1) - at;
        const double turn = 2 * std::numbers::pi / static_cast<double>(n_fft);
        const double window = 0.5 - 0.5 * std::cos(turn * static_cast<double>(i));
        z += x[static_cast<std::size_t>(at)] * window * std::polar(1.0, -turn * static_cast<double>(i * k % n_fft));
      }
      for (int64_t b = 0; b < m.n_mels; ++b)
        y[static_cast<std::size_t>(b * frames + t)] +=
            std::norm(z) * filters[static_cast<std::size_t>(k * m.n_mels + b)];
    }
  return y;
}

OpCase mel_spectrograms() {
  const Mel m{false, false, 0, 1000, 17, 5, 2000};
  const auto of = [=](double power, const Shape& lead) {
    Shape sizes = lead;
    sizes.push_back(50);
    Sample s = sample({sizes}, uniform(), 32 * 17);
    s.code = fmt::format("mel_spectrogram(x0, {{.sample_rate = 2000, .n_fft = 32, .n_mels = 5, .power = {}}})", power);
    s.torch = "-";
    s.op = [=](const Tensors& x) -> Tensors {
      return {mel_spectrogram(x[0], {.sample_rate = 2000, .n_fft = 32, .n_mels = 5, .power = power})};
    };
    return s;
  };
  OpCase c{.name = "mel_spectrogram"};
  c.samples = {of(2, {}), of(2, {2}), of(2, {2, 1})};
  for (Sample& s : c.samples)
    s.reference = [=](const Tensors& x) -> Tensors {
      const std::vector<double> v = x[0].to_vector<double>();
      std::vector<double> y;
      for (std::size_t first = 0; first < v.size(); first += 50) {
        const std::vector<double> one = mel_reference({v.begin() + static_cast<std::ptrdiff_t>(first),
                                                       v.begin() + static_cast<std::ptrdiff_t>(first + 50)}, 32, 16, m);
        y.insert(y.end(), one.begin(), one.end());
      }
      Shape sizes(x[0].sizes().begin(), x[0].sizes().end() - 1);
      sizes.push_back(5);
      sizes.push_back(4);
      return {from_data(y, sizes)};
    };
  c.op = c.samples[0].op;
  c.layouts = {Layout::contiguous, Layout::transposed, Layout::sliced};
  c.tolerance = {.ulps = 4, .scale = 4};
  c.grad_tolerance = {.ulps = 32, .scale = 16};
  c.errors = {{"[mel_spectrogram] needs floating-point values, waveform is int64",
               [] { mel_spectrogram(ones({500}, kInt64)); }},
              {"[mel_spectrogram] the waveform has no axis of samples", [] { mel_spectrogram(ones({})); }}};
  return c;
}

}  // namespace

std::vector<OpCase> short_time_cases() {
  std::vector<OpCase> cases = {short_time(), inverse_short_time(), mel_spectrograms()};
  for (OpCase& c : cases) c = with_own_values(with_fixed_sizes(std::move(c)));  // frames have to fit into the signal
  cases.push_back(windows());
  cases.push_back(mel_banks());
  return cases;
}

}  // namespace levin::test
