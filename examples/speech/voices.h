#pragma once
// Words as a formant synthesizer speaks them: Klatt, "Software for a cascade/parallel formant synthesizer", 1980.
#include <levin/levin.h>

#include <map>
#include <string>
#include <vector>

namespace levin {

inline constexpr std::int64_t kRate = 8000, kLength = 24576;  // samples per second, and of a recording

/// The digits in English, one letter for each twentieth of a second.
inline const std::vector<std::string> kDigits{"zziirrouu", "wwaAAnn",  "_ttuuuuu",  "TTrriiii", "ffooorr",
                                              "ffaaIivv",  "ssI_kkss", "ssevvAAnn", "eeIii_t",  "nnaaIinn"};

/// Three formants in Hz (vowels: Peterson & Barney 1952), and the strengths of voice and noise.
inline const std::map<char, std::vector<double>> kSounds{
    {'i', {270, 2290, 3010, 1, 0}},    {'I', {390, 1990, 2550, 1, 0}},      {'e', {530, 1840, 2480, 1, 0}},
    {'a', {730, 1090, 2440, 1, 0}},    {'A', {640, 1190, 2390, 1, 0}},      {'o', {570, 840, 2410, 1, 0}},
    {'u', {300, 870, 2240, 1, 0}},     {'r', {310, 1060, 1380, 0.7, 0}},    {'w', {290, 610, 2150, 0.7, 0}},
    {'n', {280, 1700, 2600, 0.4, 0}},  {'v', {220, 1100, 2080, 0.3, 0.05}}, {'z', {240, 3300, 3700, 0.2, 0.2}},
    {'s', {3300, 3600, 3900, 0, 0.3}}, {'f', {1400, 2700, 3700, 0, 0.1}},   {'T', {1600, 2800, 3800, 0, 0.07}},
    {'t', {2800, 3400, 3800, 0, 0.4}}, {'k', {1500, 2000, 2600, 0, 0.4}},   {'_', {500, 1500, 2500, 0, 0}}};

/// A voice, and how fast it speaks.
struct Speaker {
  double pitch, size, speed;  // Hz, and factors of the formants and of the speed
  explicit Speaker(Generator& rng)
      : pitch(80 + 220 * rng.uniform()), size(0.85 + 0.35 * rng.uniform()), speed(0.8 + 0.5 * rng.uniform()) {}

  /// Speaks letters at a random moment of a noisy recording (24576).
  Tensor say(const std::string& letters, Generator& rng) const {
    const auto random = [&](double low, double high) { return low + (high - low) * rng.uniform(); };
    std::vector<double> values;
    for (const char c : letters) values.insert(values.end(), kSounds.at(c).begin(), kSounds.at(c).end());
    const Tensor sounds = tensor(values).to(kFloat32).view({1, -1, 5}).transpose(1, 2);  // (1, 5, letters)
    const auto stretched = [&](std::int64_t first, std::int64_t count, std::int64_t steps) {
      return interpolate(sounds.narrow(1, first, count), {.size = {steps}, .mode = ResizeMode::linear})[0];
    };
    // The source is a sawtooth of falling pitch, and noise, in frames of 64 samples.
    const auto frames = static_cast<std::int64_t>(static_cast<double>(std::ssize(letters)) * kRate / 20 / 64 / speed);
    const Tensor strengths = stretched(3, 2, 64 * (frames - 1));
    const Tensor fall = linspace(1.1, random(0.7, 1.0), strengths.size(1));
    const Tensor voice = frac(cumsum(fall * (pitch * random(0.9, 1.1) / kRate), 0)) - 0.5;
    const Tensor source = voice * strengths[0] + randn(voice.sizes(), {.generator = &rng}) * strengths[1];
    // The formants shape its spectrum.
    const Tensor formants = stretched(0, 3, frames), hertz = linspace(0, kRate / 2, 129).unsqueeze(1);
    Tensor resonance = zeros({129, frames});
    for (std::int64_t i = 0; i < 3; ++i)
      resonance += 1 / (1 + square((hertz - formants[i] * (size * random(0.95, 1.05))) / (80 + 40 * i)));
    const Tensor window = hann_window(256);
    const Tensor spoken = istft(stft(source, 256, {.hop_length = 64, .window = window}) * resonance, 256,
                                {.hop_length = 64, .window = window});
    const double loudness = spoken.std().item<double>() * random(0.1, 1.0);
    const Tensor out = loudness * randn({kLength}, {.generator = &rng});
    const auto begin = static_cast<std::int64_t>(random(0, static_cast<double>(kLength - spoken.size(0))));
    out.narrow(0, begin, spoken.size(0)).add_(spoken);
    return out * (0.1 / out.std());
  }
};

}  // namespace levin
