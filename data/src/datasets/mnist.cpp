#include <levin/data/idx.h>
#include <levin/data/mnist.h>

#include "check_index.h"

#include <fmt/format.h>

#include <filesystem>

namespace levin::data {

namespace fs = std::filesystem;

namespace {

constexpr int kClasses = 10;

/// The differences between the two data sets.
struct Source {
  const char* tag;
  const char* remedy;
};
constexpr Source kFashion{"fashion_mnist",
                          "Install Debian's package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), or "
                          "give the folder of the files as `dir` (--data in the sample programs)."};
constexpr Source kDigits{"mnist", "Give the folder of the four MNIST files as `dir` (--data in the sample programs)."};

/// Finds a file under its usual names, gzipped or not.
fs::path find_file(const fs::path& dir, const std::string& stem, const std::string& kind, const Source& source) {
  for (const char* separator : {"-", "."}) {
    for (const char* suffix : {"", ".gz"}) {
      fs::path candidate = dir / (stem + separator + kind + "-ubyte" + suffix);
      if (fs::exists(candidate)) return candidate;
    }
  }
  throw IoError(fmt::format("[{}] {} was not found. {}", source.tag,
                            (dir / (stem + "-" + kind + "-ubyte.gz")).string(), source.remedy));
}

Tensor read_images(const std::string& path, const Source& source) {
  Tensor images = read_idx(path);
  if (images.dtype() != kUInt8 || images.dim() != 3) {
    throw IoError(fmt::format("[{}] {} holds {} of shape {}, not uint8 images (N, 28, 28). Is this the right file?",
                              source.tag, path, name_of(images.dtype()), to_string(images.sizes())));
  }
  return images;
}

Tensor read_labels(const std::string& path, int64_t images, const Source& source) {
  const Tensor bytes = read_idx(path);
  if (bytes.dtype() != kUInt8 || bytes.dim() != 1 || bytes.size(0) != images) {
    throw IoError(
        fmt::format("[{}] {} holds {} of shape {}, not one uint8 label for each of the {} images. Do the two "
                    "files belong together?",
                    source.tag, path, name_of(bytes.dtype()), to_string(bytes.sizes()), images));
  }
  Tensor labels = empty({images}, {.dtype = kInt64});
  const auto* from = bytes.data<std::uint8_t>();
  for (int64_t i = 0; i < images; ++i) {
    if (from[i] >= kClasses) {
      throw IoError(fmt::format("[{}] {}: label {} of image {} is out of range; the classes are 0 to {}.", source.tag,
                                path, static_cast<int>(from[i]), i, kClasses - 1));
    }
    labels.data<int64_t>()[i] = from[i];
  }
  return labels;
}

ImageDataset make(std::string_view split, const fs::path& dir, const Source& source, float mean, float std,
                  Transform augment) {
  detail::check_split(source.tag, split);
  const std::string stem = split == "train" ? "train" : "t10k";
  const std::string labels_path = find_file(dir, stem + "-labels", "idx1", source);
  Tensor images = read_images(find_file(dir, stem + "-images", "idx3", source), source);
  Tensor labels = read_labels(labels_path, images.size(0), source);
  return ImageDataset(std::move(images), std::move(labels),
                      {.mean = {mean}, .std = {std}, .augment = std::move(augment)});
}

}  // namespace

FashionMnist::FashionMnist(std::string_view split, const std::string& dir, Transform augment)
    : ImageDataset(make(split, dir, kFashion, 0.2860f, 0.3530f, std::move(augment))) {}

Mnist::Mnist(std::string_view split, const std::string& dir, Transform augment)
    : ImageDataset(make(split, dir, kDigits, 0.1307f, 0.3081f, std::move(augment))) {}

const std::vector<std::string>& FashionMnist::classes() {
  static const std::vector<std::string> names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                                 "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
  return names;
}

}  // namespace levin::data
