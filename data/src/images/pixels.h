#pragma once
// Rows of interleaved bytes, the layout of the image libraries.

#include <levin/data/image.h>

#include <cstdint>
#include <vector>

namespace levin::data::detail {

struct Pixels {
  int64_t height = 0, width = 0;
  int channels = 0;
  std::vector<std::uint8_t> bytes;  ///< (height, width, channels)
};

/// Decode an image; errors begin with `name`.
Pixels read_png(std::span<const std::byte> file, const std::string& name);
Pixels read_jpeg(std::span<const std::byte> file, const std::string& name);
std::string png_bytes(const Pixels& pixels, int compression_level);

/// Sizes a vector for an image, after a check that a file of `bytes` bytes can hold so many: one byte of it stands for
/// at most `most_pixels`.
void make_room(Pixels& pixels, std::size_t bytes, int64_t most_pixels, const std::string& name);
[[noreturn]] void refuse_image(const std::string& name, const std::string& why);

}  // namespace levin::data::detail
