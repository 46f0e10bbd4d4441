// WAV: RIFF chunks "fmt " and "data" (Microsoft, "Multimedia Programming Interface and Data Specifications 1.0", 1991).

#include <levin/core/io/bytes.h>
#include <levin/core/io.h>
#include <levin/data/audio.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>

namespace levin::data {

namespace {

using Bytes = std::span<const std::byte>;

constexpr int kInteger = 1, kFloatingPoint = 3, kExtensible = 0xfffe;

struct WavFormat {
  int encoding, channels, bits;
  int64_t sample_rate;
};

[[noreturn]] void refuse_wav(const std::string& name, const std::string& why) {
  throw IoError(fmt::format("[read_wav] {}: {}", name, why));
}

std::string_view chunk_name(Bytes file, std::size_t at) { return {reinterpret_cast<const char*>(file.data()) + at, 4}; }

WavFormat read_format(Bytes chunk, const std::string& name) {
  if (chunk.size() < 16) refuse_wav(name, fmt::format("its format takes {} bytes instead of 16.", chunk.size()));
  WavFormat f{io::little_endian<std::uint16_t>(chunk), io::little_endian<std::uint16_t>(chunk, 2),
              io::little_endian<std::uint16_t>(chunk, 14), io::little_endian<std::uint32_t>(chunk, 4)};
  if (f.encoding == kExtensible && chunk.size() >= 26) f.encoding = io::little_endian<std::uint16_t>(chunk, 24);
  const bool integers = f.encoding == kInteger && (f.bits == 8 || f.bits == 16 || f.bits == 24 || f.bits == 32);
  const bool floats = f.encoding == kFloatingPoint && (f.bits == 32 || f.bits == 64);
  if (!integers && !floats)
    refuse_wav(name, fmt::format("encoding {} with {} bits is not supported; use integers of 8 to 32 bits or "
                                 "floating-point numbers of 32 or 64.",
                                 f.encoding, f.bits));
  if (f.channels == 0 || f.sample_rate == 0)
    refuse_wav(name, fmt::format("it has {} channels and {} frames per second.", f.channels, f.sample_rate));
  return f;
}

/// Returns one sample; integers of b bits divided by 2^(b-1).
float sample_at(Bytes data, std::size_t at, const WavFormat& f) {
  if (f.encoding == kFloatingPoint && f.bits == 32)
    return std::bit_cast<float>(io::little_endian<std::uint32_t>(data, at));
  if (f.encoding == kFloatingPoint)
    return static_cast<float>(std::bit_cast<double>(io::little_endian<std::uint64_t>(data, at)));
  if (f.bits == 8) return (static_cast<float>(data[at]) - 128.f) / 128.f;
  std::uint32_t high = 0;  // the sample in the upper bits
  for (int i = 0; i < f.bits / 8; ++i)
    high |= static_cast<std::uint32_t>(data[at + static_cast<std::size_t>(i)]) << (32 - f.bits + 8 * i);
  return static_cast<float>(static_cast<double>(static_cast<std::int32_t>(high)) * 0x1p-31);
}

int bits_of(WavEncoding encoding) {
  return encoding == WavEncoding::pcm16 ? 16 : encoding == WavEncoding::pcm24 ? 24 : 32;
}

void put_sample(std::string& out, float value, WavEncoding encoding) {
  if (encoding == WavEncoding::float32) return io::put_little_endian(out, std::bit_cast<std::uint32_t>(value));
  const int bits = bits_of(encoding);
  const double bound = std::ldexp(1.0, bits - 1);
  const double scaled = std::clamp(std::nearbyint(static_cast<double>(value) * bound), -bound, bound - 1);
  const auto number = static_cast<std::uint32_t>(static_cast<std::int32_t>(std::isnan(value) ? 0 : scaled));
  for (int i = 0; i < bits / 8; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}

}  // namespace

Audio read_wav(const std::string& path) {
  const io::FileBytes contents = io::read_bytes(path);
  const Bytes file = contents.data;
  if (file.size() < 12 || chunk_name(file, 0) != "RIFF" || chunk_name(file, 8) != "WAVE")
    refuse_wav(path, "it is not a WAV file.");
  std::optional<WavFormat> format;
  for (std::size_t at = 12; at + 8 <= file.size();) {
    const std::string_view kind = chunk_name(file, at);
    const std::size_t length = io::little_endian<std::uint32_t>(file, at + 4);
    const std::size_t rest = file.size() - at - 8;
    // A program that was stopped while it recorded leaves the length of the data at 0xffffffff.
    if (length > rest && !(kind == "data" && length == 0xffffffff))
      refuse_wav(path, fmt::format("a part of {} bytes begins {} bytes before its end.", length, rest));
    const Bytes chunk = file.subspan(at + 8, std::min(length, rest));
    if (kind == "fmt ") format = read_format(chunk, path);
    if (kind == "data") {
      if (!format) refuse_wav(path, "its data come before their format.");
      const auto width = static_cast<std::size_t>(format->bits / 8);
      const auto channels = static_cast<std::size_t>(format->channels);
      const std::size_t frames = chunk.size() / (width * channels);
      Tensor samples = empty({format->channels, static_cast<int64_t>(frames)}, {.dtype = kFloat32});
      float* to = samples.data<float>();
      for (std::size_t c = 0; c < channels; ++c)
        for (std::size_t i = 0; i < frames; ++i) *to++ = sample_at(chunk, (i * channels + c) * width, *format);
      return {samples, format->sample_rate};
    }
    at += 8 + length + length % 2;
  }
  refuse_wav(path, "it has no data.");
}

void write_wav(const std::string& path, const Tensor& samples, int64_t sample_rate, WavEncoding encoding) {
  if (samples.dim() < 1 || samples.dim() > 2 || (samples.dim() == 2 && samples.size(0) < 1))
    throw ShapeError(
        fmt::format("[write_wav] samples are (channels, frames) or (frames), not {}.", to_string(samples.sizes())));
  if (!samples.is_floating())
    throw DTypeError(fmt::format("[write_wav] samples are {}; give a floating type.", name_of(samples.dtype())));
  if (sample_rate < 1 || sample_rate > std::numeric_limits<std::int32_t>::max())
    throw ValueError(fmt::format("[write_wav] the sample rate is {} frames per second; give 1 or more.", sample_rate));
  const Tensor values = samples.detach().cpu().to(kFloat32).contiguous();
  const int64_t channels = samples.dim() == 2 ? samples.size(0) : 1, frames = samples.size(-1);
  const int64_t width = bits_of(encoding) / 8, bytes = channels * frames * width;
  if (channels > std::numeric_limits<std::uint16_t>::max() || bytes > 0xffffff00)
    throw ValueError(fmt::format("[write_wav] {} channels of {} frames do not fit a WAV file, which has 4 GiB at most.",
                                 channels, frames));
  std::string out = "RIFF";
  io::put_little_endian(out, static_cast<std::uint32_t>(36 + bytes + bytes % 2));
  out += "WAVEfmt ";
  io::put_little_endian(out, std::uint32_t{16});
  io::put_little_endian(out,
                            static_cast<std::uint16_t>(encoding == WavEncoding::float32 ? kFloatingPoint : kInteger));
  io::put_little_endian(out, static_cast<std::uint16_t>(channels));
  io::put_little_endian(out, static_cast<std::uint32_t>(sample_rate));
  io::put_little_endian(out, static_cast<std::uint32_t>(sample_rate * channels * width));
  io::put_little_endian(out, static_cast<std::uint16_t>(channels * width));
  io::put_little_endian(out, static_cast<std::uint16_t>(8 * width));
  out += "data";
  io::put_little_endian(out, static_cast<std::uint32_t>(bytes));
  for (int64_t i = 0; i < frames; ++i)
    for (int64_t c = 0; c < channels; ++c) put_sample(out, values.data<float>()[c * frames + i], encoding);
  if (bytes % 2) out += '\0';
  io::write_file(path, out);
}

}  // namespace levin::data
