#include <levin/trainer/image.h>

#include <levin/autograd/modes.h>
#include <levin/autograd/ops.h>

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

namespace levin {
namespace {

void put_u32(io::Bytes& out, std::uint32_t v) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<std::byte>(v >> shift));
}

void put_chunk(io::Bytes& out, const char* type, const io::Bytes& data) {
  put_u32(out, static_cast<std::uint32_t>(data.size()));
  const auto start = out.size();
  for (const char* c = type; *c; ++c) out.push_back(static_cast<std::byte>(*c));
  out.insert(out.end(), data.begin(), data.end());
  put_u32(out, io::crc32(std::span(out).subspan(start)));
}

io::Bytes deflated(const io::Bytes& raw) {
  uLongf size = compressBound(static_cast<uLong>(raw.size()));
  io::Bytes out(size);
  const auto* from = reinterpret_cast<const Bytef*>(raw.data());
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size, from, static_cast<uLong>(raw.size()), 9) != Z_OK)
    throw OutOfMemory("[encode_png] zlib had no memory. Give a smaller picture.");
  out.resize(size);
  return out;
}

/// Values 0 to 255 in row-major order of (C, H, W).
std::vector<std::uint8_t> pixels_of(const Tensor& image) {
  const Tensor t = image.detach().cpu();
  std::vector<std::uint8_t> out;
  out.reserve(static_cast<std::size_t>(t.numel()));
  if (!is_floating(t.dtype())) {
    for (const auto v : t.to_vector<std::int64_t>())
      out.push_back(static_cast<std::uint8_t>(std::clamp<std::int64_t>(v, 0, 255)));
    return out;
  }
  for (const double v : t.to_vector<double>()) {
    const double x = v > 0 ? std::min(v * 255 + 0.5, 255.0) : 0.0;  // NaN is black
    out.push_back(static_cast<std::uint8_t>(x));
  }
  return out;
}

}  // namespace

io::Bytes encode_png(const Tensor& image) {
  const bool flat = image.dim() == 2;
  const std::int64_t c = flat ? 1 : image.dim() == 3 ? image.size(0) : 0;
  if ((c != 1 && c != 3 && c != 4) || image.numel() == 0)
    throw ShapeError(fmt::format("[encode_png] a picture cannot be {}. Give (C, H, W) with C of 1, 3 or 4, or (H, W).",
                                 to_string(image.sizes())));
  const std::int64_t h = image.size(-2), w = image.size(-1);
  const auto pixels = pixels_of(image);
  io::Bytes rows;  // each row: the filter "left neighbour", then its differences
  rows.reserve(static_cast<std::size_t>(h * (w * c + 1)));
  const auto at = [&](std::int64_t k, std::int64_t y, std::int64_t x) -> int {
    return x < 0 ? 0 : pixels[static_cast<std::size_t>((k * h + y) * w + x)];
  };
  for (std::int64_t y = 0; y < h; ++y) {
    rows.push_back(std::byte{1});
    for (std::int64_t x = 0; x < w; ++x)
      for (std::int64_t k = 0; k < c; ++k) rows.push_back(static_cast<std::byte>(at(k, y, x) - at(k, y, x - 1)));
  }
  io::Bytes out;
  for (const char b : {'\x89', 'P', 'N', 'G', '\r', '\n', '\x1a', '\n'}) out.push_back(static_cast<std::byte>(b));
  io::Bytes header;
  put_u32(header, static_cast<std::uint32_t>(w));
  put_u32(header, static_cast<std::uint32_t>(h));
  for (const int b : {8, c == 1 ? 0 : c == 3 ? 2 : 6, 0, 0, 0}) header.push_back(static_cast<std::byte>(b));
  put_chunk(out, "IHDR", header);
  put_chunk(out, "IDAT", deflated(rows));
  put_chunk(out, "IEND", {});
  return out;
}

Tensor make_grid(const Tensor& images, const GridOptions& o) {
  const no_grad guard;
  Tensor x = images.detach().cpu();
  x = is_floating(x.dtype()) ? x.to(kFloat32) : x.to(kFloat32) / 255;
  if (x.dim() == 2) x = x.unsqueeze(0);
  if (x.dim() == 3) x = x.unsqueeze(0);
  if (x.dim() != 4 || (x.size(1) != 1 && x.size(1) != 3) || x.numel() == 0)
    throw ShapeError(fmt::format("[make_grid] pictures cannot be {}. Give (N, C, H, W) with C of 1 or 3.",
                                 to_string(images.sizes())));
  if (o.nrow < 1 || o.padding < 0)
    throw ValueError(
        fmt::format("[make_grid] nrow is {} and padding {}. Give 1 or more, and 0 or more.", o.nrow, o.padding));
  if (o.normalize) {
    const auto [low, high] = o.value_range.value_or(std::pair(min(x).item<double>(), max(x).item<double>()));
    x = (x.clamp(low, high) - low) / std::max(high - low, 1e-5);
  }
  const std::int64_t n = x.size(0), h = x.size(2) + o.padding, w = x.size(3) + o.padding;
  const std::int64_t columns = std::min(o.nrow, n), lines = (n + columns - 1) / columns;
  Tensor grid = full({3, h * lines + o.padding, w * columns + o.padding}, o.pad_value, {.dtype = kFloat32});
  for (std::int64_t i = 0; i < n; ++i)
    grid.narrow(1, i / columns * h + o.padding, h - o.padding)
        .narrow(2, i % columns * w + o.padding, w - o.padding)
        .copy_(x.select(0, i));
  return grid;
}

void save_image(const Tensor& images, const std::filesystem::path& path, const GridOptions& options) {
  if (path.has_parent_path()) std::filesystem::create_directories(path.parent_path());
  io::write_file(path, encode_png(make_grid(images, options)));
}

}  // namespace levin
