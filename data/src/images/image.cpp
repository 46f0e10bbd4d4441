#include <levin/core/io/bytes.h>
#include <levin/core/io.h>
#include <levin/data/image.h>

#include "../datasets/check_index.h"
#include "pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace levin::data {

namespace fs = std::filesystem;

namespace detail {

void refuse_image(const std::string& name, const std::string& why) {
  throw IoError(fmt::format("[image] {}: {}", name, why));
}

void make_room(Pixels& pixels, std::size_t bytes, int64_t most_pixels, const std::string& name) {
  // Both libraries hold sizes in 32 bits, so the product cannot overflow.
  const int64_t count = pixels.height * pixels.width;
  if (count / most_pixels > static_cast<int64_t>(bytes)) {
    refuse_image(name, fmt::format("an image of {} x {} cannot be packed into its {} bytes. It is damaged.",
                                   pixels.width, pixels.height, bytes));
  }
  pixels.bytes.resize(static_cast<std::size_t>(count * pixels.channels));
}

}  // namespace detail

namespace {

using detail::Pixels;

bool has_prefix(std::span<const std::byte> bytes, std::initializer_list<int> prefix) {
  return bytes.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), bytes.begin(),
                    [](int expected, std::byte b) { return static_cast<int>(b) == expected; });
}

/// The number of a mode is that of its channels, as torchvision numbers them.
int channels_of(ImageReadMode mode, int in_file) {
  static_assert(static_cast<int>(ImageReadMode::rgb_alpha) == 4);
  return mode == ImageReadMode::unchanged ? in_file : static_cast<int>(mode);
}

/// Luma of ITU-R BT.601 in 16-bit fixed point.
std::uint8_t luma(const std::uint8_t* p) {
  return static_cast<std::uint8_t>((19595 * p[0] + 38470 * p[1] + 7471 * p[2] + 32768) >> 16);
}

/// Converts (H, W, C) to (C', H, W).
Tensor to_planes(const Pixels& pixels, int channels) {
  Tensor out = empty({channels, pixels.height, pixels.width}, {.dtype = kUInt8});
  const int64_t count = pixels.height * pixels.width;
  const int from_colours = pixels.channels >= 3 ? 3 : 1, to_colours = channels >= 3 ? 3 : 1;
  const bool from_alpha = pixels.channels % 2 == 0, to_alpha = channels % 2 == 0;
  auto* to = out.data<std::uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    const std::uint8_t* p = pixels.bytes.data() + i * pixels.channels;
    for (int c = 0; c < to_colours; ++c) {
      to[c * count + i] = to_colours == 1 && from_colours == 3 ? luma(p) : p[from_colours == 3 ? c : 0];
    }
    if (to_alpha) to[to_colours * count + i] = from_alpha ? p[from_colours] : std::uint8_t{255};
  }
  return out;
}

bool is_image(const fs::path& path) {
  std::string e = path.extension().string();
  std::transform(e.begin(), e.end(), e.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return e == ".png" || e == ".jpg" || e == ".jpeg";
}

std::vector<fs::path> images_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink)) {
    if (entry.is_regular_file() && is_image(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

Tensor decode_image(std::span<const std::byte> bytes, ImageReadMode mode, const std::string& name) {
  Pixels pixels;
  if (has_prefix(bytes, {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'})) {
    pixels = detail::read_png(bytes, name);
  } else if (has_prefix(bytes, {0xff, 0xd8, 0xff})) {
    pixels = detail::read_jpeg(bytes, name);
  } else {
    detail::refuse_image(
        name, fmt::format("its {} bytes begin neither as PNG nor as JPEG. Is this the right file?", bytes.size()));
  }
  return to_planes(pixels, channels_of(mode, pixels.channels));
}

Tensor read_image(const std::string& path, ImageReadMode mode) {
  return decode_image(io::read_bytes(path).data, mode, path);
}

std::string encode_png(const Tensor& image, int compression_level) {
  if (image.dtype() != kUInt8) {
    throw DTypeError(
        fmt::format("[encode_png] the image is {}; give uint8, or use save_image.", name_of(image.dtype())));
  }
  if (image.dim() != 3 || image.size(0) < 1 || image.size(0) > 4 || image.numel() == 0) {
    throw ShapeError(
        fmt::format("[encode_png] an image is (C, H, W) with 1 to 4 channels, not {}.", to_string(image.sizes())));
  }
  if (compression_level < 0 || compression_level > 9) {
    throw ValueError(fmt::format("[encode_png] compression_level is {}; use 0 to 9.", compression_level));
  }
  const Tensor rows = image.cpu().permute({1, 2, 0}).contiguous();  // (H, W, C)
  const auto* bytes = rows.data<std::uint8_t>();
  const Pixels pixels{rows.size(0), rows.size(1), static_cast<int>(rows.size(2)), {bytes, bytes + rows.numel()}};
  return detail::png_bytes(pixels, compression_level);
}

void write_png(const std::string& path, const Tensor& image, int compression_level) {
  io::write_file(path, encode_png(image, compression_level));
}

ImageFolder::ImageFolder(const std::string& root, Transform transform, ImageReadMode mode)
    : transform_(std::move(transform)), mode_(mode) {
  if (!fs::is_directory(root)) {
    throw IoError(fmt::format("[image_folder] {} is not a folder. Name one that holds a folder for each class.", root));
  }
  for (const auto& entry : fs::directory_iterator(root)) {
    if (entry.is_directory()) classes_.push_back(entry.path().filename().string());
  }
  std::sort(classes_.begin(), classes_.end());
  if (classes_.empty()) {
    throw IoError(fmt::format("[image_folder] {} holds no folders; give each class one.", root));
  }
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    const std::vector<fs::path> files = images_in(fs::path(root) / classes_[c]);
    if (files.empty()) {
      throw IoError(fmt::format("[image_folder] {} holds no .png, .jpg or .jpeg images; remove it or fill it.",
                                (fs::path(root) / classes_[c]).string()));
    }
    files_.insert(files_.end(), files.begin(), files.end());
    targets_.resize(files_.size(), static_cast<int64_t>(c));
  }
}

Sample ImageFolder::get(int64_t index, Generator& rng) const {
  detail::check_index(index, size());
  const auto i = static_cast<std::size_t>(index);
  Tensor image = read_image(files_[i], mode_);
  if (transform_) image = transform_(image, rng);
  return {image, from_data<int64_t>({targets_[i]}, {})};
}

}  // namespace levin::data
