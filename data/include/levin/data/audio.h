#pragma once
// Audio files: WAV.

#include <levin/core/tensor.h>

#include <string>

namespace levin::data {

/// A recording.
struct Audio {
  Tensor samples;           ///< f32 (channels, frames), usually from -1 to 1
  int64_t sample_rate = 0;  ///< frames per second
};

/// Reads a WAV file of unsigned 8-bit, signed 16-, 24- and 32-bit integers or 32- and 64-bit floating-point samples,
/// with the values of torchaudio.load: integers of b bits are divided by 2^(b-1). Throws IoError for a missing or
/// damaged file and for other encodings.
Audio read_wav(const std::string& path);

/// Encoding of the samples in a WAV file: signed integers of 16, 24 or 32 bits, or 32-bit floating-point numbers.
enum class WavEncoding { pcm16, pcm24, pcm32, float32 };

/// Writes samples (channels, frames) or (frames) of floating type. Integers are rounded, and values outside of [-1, 1]
/// are clipped. The file is replaced atomically. Throws ShapeError, DTypeError, and ValueError for a sample rate that
/// is not above 0.
void write_wav(const std::string& path, const Tensor& samples, int64_t sample_rate,
               WavEncoding encoding = WavEncoding::pcm16);

}  // namespace levin::data
