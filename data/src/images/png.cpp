// PNG by libpng. Its errors return by longjmp, so the functions that call it hold no object with a destructor.

#include "pixels.h"

#include <fmt/format.h>
#include <png.h>

#include <csetjmp>
#include <cstring>

namespace levin::data::detail {

namespace {

[[noreturn]] void on_error(png_structp png, png_const_charp text);
void on_warning(png_structp, png_const_charp) {}

/// Owns libpng's structures for reading or writing.
struct PngSession {
  explicit PngSession(bool for_writing) : writes(for_writing) {
    const auto create = writes ? png_create_write_struct : png_create_read_struct;
    png = create(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info = png ? png_create_info_struct(png) : nullptr;
  }
  ~PngSession() {
    if (writes)
      png_destroy_write_struct(&png, &info);
    else
      png_destroy_read_struct(&png, &info, nullptr);
  }
  PngSession(const PngSession&) = delete;
  PngSession& operator=(const PngSession&) = delete;

  const bool writes;
  png_structp png;
  png_infop info;
  char message[120] = "unknown error";
};

void on_error(png_structp png, png_const_charp text) {
  auto* session = static_cast<PngSession*>(png_get_error_ptr(png));
  std::strncpy(session->message, text, sizeof session->message - 1);
  png_longjmp(png, 1);
}

struct Source {
  const std::byte* data = nullptr;
  std::size_t size = 0, at = 0;
};

void on_read(png_structp png, png_bytep to, std::size_t size) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (size > source->size - source->at) png_error(png, "it is truncated");
  std::memcpy(to, source->data + source->at, size);
  source->at += size;
}

void on_write(png_structp png, png_bytep from, std::size_t size) {
  try {
    static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<const char*>(from), size);
  } catch (...) {
    png_error(png, "memory ran out");  // exceptions must not pass through libpng
  }
}

void on_flush(png_structp) {}

/// Reads up to the first row; returns false after an error.
bool read_header(PngSession& s, Source& source, Pixels& pixels) {
  if (setjmp(png_jmpbuf(s.png))) return false;  // NOLINT
  png_set_read_fn(s.png, &source, on_read);
  png_read_info(s.png, s.info);
  if (png_get_bit_depth(s.png, s.info) == 16) png_set_strip_16(s.png);
  png_set_expand(s.png);  // expands palettes, fewer than 8 bits and transparent colours
  png_set_interlace_handling(s.png);
  png_read_update_info(s.png, s.info);
  pixels.height = png_get_image_height(s.png, s.info);
  pixels.width = png_get_image_width(s.png, s.info);
  pixels.channels = png_get_channels(s.png, s.info);
  return true;
}

bool read_rows(PngSession& s, png_bytepp rows) {
  if (setjmp(png_jmpbuf(s.png))) return false;  // NOLINT
  png_read_image(s.png, rows);
  png_read_end(s.png, nullptr);
  return true;
}

bool write_all(PngSession& s, std::string& out, const Pixels& pixels, png_bytepp rows, int level) {
  constexpr int types[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                           PNG_COLOR_TYPE_RGB_ALPHA};
  if (setjmp(png_jmpbuf(s.png))) return false;  // NOLINT
  png_set_write_fn(s.png, &out, on_write, on_flush);
  png_set_compression_level(s.png, level);
  png_set_IHDR(s.png, s.info, static_cast<png_uint_32>(pixels.width), static_cast<png_uint_32>(pixels.height), 8,
               types[pixels.channels - 1], PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(s.png, s.info);
  png_write_image(s.png, rows);
  png_write_end(s.png, s.info);
  return true;
}

std::vector<png_bytep> row_pointers(const Pixels& pixels) {
  std::vector<png_bytep> rows;
  const int64_t stride = pixels.width * pixels.channels;
  auto* bytes = const_cast<png_bytep>(pixels.bytes.data());
  for (int64_t y = 0; y < pixels.height; ++y) rows.push_back(bytes + y * stride);
  return rows;
}

void require_started(const PngSession& s) {
  if (!s.png || !s.info) throw OutOfMemory("[png] libpng did not start: memory ran out.");
}

}  // namespace

Pixels read_png(std::span<const std::byte> file, const std::string& name) {
  constexpr int64_t most_pixels = 1032 * 8;  // per byte: deflate's highest ratio, one bit per pixel
  Pixels pixels;
  PngSession s(/*for_writing=*/false);
  require_started(s);
  Source source{file.data(), file.size(), 0};
  const auto refuse = [&] { refuse_image(name, fmt::format("PNG: {}. It is damaged.", s.message)); };
  if (!read_header(s, source, pixels)) refuse();
  make_room(pixels, file.size(), most_pixels, name);
  std::vector<png_bytep> rows = row_pointers(pixels);
  if (!read_rows(s, rows.data())) refuse();
  return pixels;
}

std::string png_bytes(const Pixels& pixels, int compression_level) {
  std::string out;
  PngSession s(/*for_writing=*/true);
  require_started(s);
  std::vector<png_bytep> rows = row_pointers(pixels);
  if (!write_all(s, out, pixels, rows.data(), compression_level)) {
    throw ValueError(
        fmt::format("[png] an image of {} x {} cannot be written: {}.", pixels.width, pixels.height, s.message));
  }
  return out;
}

}  // namespace levin::data::detail
