// JPEG by libjpeg-turbo. Its errors return by longjmp, so the functions that call it hold no object with a destructor.

#include "pixels.h"

#include <fmt/format.h>

#include <csetjmp>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>
// Must follow jpeglib.h.
#include <jerror.h>

namespace levin::data::detail {

namespace {

struct JpegSession {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::jmp_buf back{};
  char message[JMSG_LENGTH_MAX] = "unknown error";
};

[[noreturn]] void on_error(j_common_ptr jpeg) {
  auto* s = static_cast<JpegSession*>(jpeg->client_data);
  s->errors.format_message(jpeg, s->message);
  std::longjmp(s->back, 1);  // NOLINT
}

/// Treats warnings as errors, since the decoder has guessed data, except for surplus bytes and unusual markers.
void on_message(j_common_ptr jpeg, int level) {
  const int code = jpeg->err->msg_code;
  const bool harmless = code == JWRN_EXTRANEOUS_DATA || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM;
  if (level < 0 && !harmless) on_error(jpeg);
}

bool read_header(JpegSession& s, std::span<const std::byte> file, Pixels& pixels) {
  if (setjmp(s.back)) return false;  // NOLINT
  jpeg_create_decompress(&s.jpeg);
  jpeg_mem_src(&s.jpeg, reinterpret_cast<const unsigned char*>(file.data()), static_cast<unsigned long>(file.size()));
  jpeg_read_header(&s.jpeg, TRUE);
  const bool four = s.jpeg.num_components == 4;
  if (s.jpeg.num_components == 3) s.jpeg.out_color_space = JCS_RGB;
  if (four) s.jpeg.out_color_space = JCS_CMYK;
  pixels.height = s.jpeg.image_height;
  pixels.width = s.jpeg.image_width;
  pixels.channels = s.jpeg.num_components;
  return true;
}

bool read_rows(JpegSession& s, Pixels& pixels) {
  if (setjmp(s.back)) return false;  // NOLINT
  jpeg_start_decompress(&s.jpeg);
  while (s.jpeg.output_scanline < s.jpeg.output_height) {
    JSAMPROW row = pixels.bytes.data() + static_cast<std::size_t>(s.jpeg.output_scanline) *
                                             static_cast<std::size_t>(pixels.width * pixels.channels);
    jpeg_read_scanlines(&s.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&s.jpeg);
  return true;
}

/// Converts CMYK to RGB. Adobe stores the inks inverted: 255 is no ink.
void inks_to_rgb(Pixels& pixels, bool inverted) {
  std::vector<std::uint8_t> rgb;
  rgb.reserve(pixels.bytes.size() / 4 * 3);
  for (std::size_t i = 0; i < pixels.bytes.size(); i += 4) {
    const auto light = [&](std::size_t ink) {
      const int value = pixels.bytes[i + ink];
      return inverted ? value : 255 - value;
    };
    for (std::size_t c = 0; c < 3; ++c) rgb.push_back(static_cast<std::uint8_t>((light(c) * light(3) + 127) / 255));
  }
  pixels.bytes = std::move(rgb);
  pixels.channels = 3;
}

struct JpegReader : JpegSession {
  JpegReader() {
    jpeg.err = jpeg_std_error(&errors);
    errors.error_exit = on_error;
    errors.emit_message = on_message;
    jpeg.client_data = static_cast<JpegSession*>(this);
  }
  ~JpegReader() { jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;
};

}  // namespace

Pixels read_jpeg(std::span<const std::byte> file, const std::string& name) {
  constexpr int64_t most_pixels = 1024;  // per byte: a block of 64 pixels takes at least one bit in its first scan
  Pixels pixels;
  JpegReader s;
  const auto refuse = [&] { refuse_image(name, fmt::format("JPEG: {}. It is damaged.", s.message)); };
  if (!read_header(s, file, pixels)) refuse();
  if (pixels.channels != 1 && pixels.channels != 3 && pixels.channels != 4) {
    refuse_image(name, fmt::format("JPEG: it has {} channels; 1, 3 and 4 are read.", pixels.channels));
  }
  make_room(pixels, file.size(), most_pixels, name);
  if (!read_rows(s, pixels)) refuse();
  if (pixels.channels == 4) inks_to_rgb(pixels, s.jpeg.saw_Adobe_marker != 0);
  return pixels;
}

}  // namespace levin::data::detail
