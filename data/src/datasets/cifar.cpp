#include <levin/core/io.h>
#include <levin/data/cifar.h>

#include "check_index.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>

namespace levin::data {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPixels = 3 * 32 * 32;

struct Format {
  const char* tag;
  const char* folder;
  std::size_t labels;  ///< label bytes before each image
  std::size_t which;   ///< the label byte to read
  int classes;
};

/// Images and labels of several files, concatenated.
struct Rows {
  std::vector<std::uint8_t> pixels;
  std::vector<int64_t> labels;
};

void append(Rows& rows, const std::string& path, const Format& f) {
  const io::Bytes file = io::read_file(path);
  const std::size_t row = f.labels + kPixels;
  if (file.empty() || file.size() % row != 0) {
    throw IoError(fmt::format(
        "[{}] {}: {} bytes do not divide into rows of {}. It is truncated, or another version than the binary "
        "one. Fetch it again.",
        f.tag, path, file.size(), row));
  }
  for (std::size_t i = 0; i < file.size() / row; ++i) {
    const std::byte* from = file.data() + i * row;
    const int label = static_cast<int>(from[f.which]);
    if (label >= f.classes) {
      throw IoError(fmt::format("[{}] {}: label {} of image {} is out of range; the classes are 0 to {}.", f.tag, path,
                                label, i, f.classes - 1));
    }
    rows.labels.push_back(label);
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(from + f.labels);
    rows.pixels.insert(rows.pixels.end(), pixels, pixels + kPixels);
  }
}

ImageDataset make(const std::vector<std::string>& names, const fs::path& dir, const Format& f,
                  std::span<const float> mean, std::span<const float> std, Transform augment) {
  const fs::path inner = fs::exists(dir / names[0]) ? dir : dir / f.folder;
  Rows rows;
  for (const std::string& name : names) {
    if (!fs::exists(inner / name)) {
      throw IoError(fmt::format("[{}] {} was not found. Unpack the binary version of the data set there.", f.tag,
                                (inner / name).string()));
    }
    append(rows, inner / name, f);
  }
  const auto n = static_cast<int64_t>(rows.labels.size());
  return ImageDataset(
      from_data(rows.pixels, {n, 3, 32, 32}), from_data(rows.labels, {n}),
      {.mean = {mean.begin(), mean.end()}, .std = {std.begin(), std.end()}, .augment = std::move(augment)});
}

ImageDataset make_10(std::string_view split, const fs::path& dir, Transform augment) {
  constexpr Format format{"cifar10", "cifar-10-batches-bin", 1, 0, 10};
  detail::check_split(format.tag, split);
  std::vector<std::string> names{"test_batch.bin"};
  if (split == "train") {
    names.clear();
    for (int i = 1; i <= 5; ++i) names.push_back(fmt::format("data_batch_{}.bin", i));
  }
  return make(names, dir, format, Cifar10::kMean, Cifar10::kStd, std::move(augment));
}

ImageDataset make_100(std::string_view split, const fs::path& dir, Transform augment, bool coarse) {
  const Format format{"cifar100", "cifar-100-binary", 2, coarse ? 0u : 1u, coarse ? 20 : 100};
  detail::check_split(format.tag, split);
  return make({std::string(split) + ".bin"}, dir, format, Cifar100::kMean, Cifar100::kStd, std::move(augment));
}

}  // namespace

Cifar10::Cifar10(std::string_view split, const std::string& dir, Transform augment)
    : ImageDataset(make_10(split, dir, std::move(augment))) {}

Cifar100::Cifar100(std::string_view split, const std::string& dir, Transform augment, bool coarse)
    : ImageDataset(make_100(split, dir, std::move(augment), coarse)) {}

}  // namespace levin::data
