#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/audio.h>

#include "damage.h"
#include "support/comparison.h"
#include "support/files.h"

#include <cmath>
#include <string>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

std::string number(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

/// A WAV file with 2 frames per second and the given format.
std::string wav(int encoding, int channels, int bits, const std::string& data, const std::string& between = "") {
  std::string format =
      number(static_cast<std::uint64_t>(encoding), 2) + number(static_cast<std::uint64_t>(channels), 2) + number(2, 4) +
      number(static_cast<std::uint64_t>(2 * channels * bits / 8), 4) +
      number(static_cast<std::uint64_t>(channels * bits / 8), 2) + number(static_cast<std::uint64_t>(bits), 2);
  const std::string body = "WAVEfmt " + number(16, 4) + format + between + "data" + number(data.size(), 4) + data;
  return "RIFF" + number(body.size(), 4) + body;
}

std::vector<float> floats(const Tensor& t) { return t.to_vector<float>(); }

}  // namespace

TEST_CASE("WAV files of each encoding are read as numbers from -1 to 1") {
  const TempDir dir;
  const auto path = dir.path / "a.wav";
  const auto read = [&](const std::string& bytes) {
    io::write_file(path, bytes);
    return read_wav(path);
  };
  const Audio two = read(wav(1, 2, 16, number(0x8000, 2) + number(0x4000, 2) + number(0x7fff, 2) + number(0xffff, 2)));
  CHECK(two.sample_rate == 2);
  CHECK(two.samples.sizes() == Shape{2, 2});
  CHECK(floats(two.samples) == std::vector<float>{-1.f, 32767.f / 32768, 0.5f, -1.f / 32768});
  CHECK(floats(read(wav(1, 1, 8, std::string("\x00\x80\xc0", 3))).samples) == std::vector<float>{-1, 0, 0.5});
  CHECK(floats(read(wav(1, 1, 24, number(0x800000, 3) + number(0x200000, 3))).samples) == std::vector<float>{-1, 0.25});
  CHECK(floats(read(wav(1, 1, 32, number(0xc0000000, 4))).samples) == std::vector<float>{-0.5});
  CHECK(floats(read(wav(3, 1, 32, number(0x3f000000, 4))).samples) == std::vector<float>{0.5});
  CHECK(floats(read(wav(3, 1, 64, number(0xbfe0000000000000, 8))).samples) == std::vector<float>{-0.5});
  // A chunk of odd length between the format and the data, which is padded.
  CHECK(floats(read(wav(1, 1, 8, "\xc0", "LIST" + number(3, 4) + "abc" + number(0, 1))).samples) ==
        std::vector<float>{0.5});
}

TEST_CASE("samples that were written are read again") {
  const TempDir dir;
  const auto path = dir.path / "a.wav";
  const Tensor samples = from_data<float>({0.5f, -0.25f, 1.5f, -2.f, 0.f, 0.125f}, {2, 3});
  const std::vector<float> clipped{0.5f, -0.25f, 1.f, -1.f, 0.f, 0.125f};
  for (const auto& [encoding, step] : {std::pair(WavEncoding::pcm16, 0x1p-15f),
                                       {WavEncoding::pcm24, 0x1p-23f},
                                       {WavEncoding::pcm32, 0x1p-24f},
                                       {WavEncoding::float32, 0.f}}) {
    write_wav(path, samples, 16000, encoding);
    const Audio audio = read_wav(path);
    CHECK(audio.sample_rate == 16000);
    REQUIRE(audio.samples.sizes() == Shape{2, 3});
    const auto got = floats(audio.samples);
    const auto wanted = encoding == WavEncoding::float32 ? floats(samples) : clipped;
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(std::abs(got[i] - wanted[i]) <= step);
  }
  write_wav(path, samples.select(0, 0), 8000);
  CHECK(read_wav(path).samples.sizes() == Shape{1, 3});
}

TEST_CASE("damaged WAV files throw, and wrong arguments are refused") {
  const TempDir dir;
  const auto path = dir.path / "a.wav";
  damage(wav(1, 2, 16, std::string(8, 'x')), [&](const std::string& bytes) {
    io::write_file(path, bytes);
    read_wav(path);
  });
  const auto message = [&](const std::string& bytes) {
    io::write_file(path, bytes);
    return message_of([&] { read_wav(path); });
  };
  CHECK(message("text") == "[read_wav] " + path.string() + ": it is not a WAV file.");
  CHECK(message(wav(2, 1, 4, "x")).find("encoding 2 with 4 bits is not supported") != std::string::npos);
  CHECK(message(wav(1, 0, 16, "x")).find("it has 0 channels and 2 frames per second.") != std::string::npos);
  CHECK(message_of([&] {
          write_wav(path, ones({2, 2, 2}), 8000);
        }) == "[write_wav] samples are (channels, frames) or (frames), not (2, 2, 2).");
  CHECK(message_of([&] { write_wav(path, zeros({2}, kInt64), 8000); }) ==
        "[write_wav] samples are int64; give a floating type.");
  CHECK(message_of([&] { write_wav(path, ones({2}), 0); }) ==
        "[write_wav] the sample rate is 0 frames per second; give 1 or more.");
}
