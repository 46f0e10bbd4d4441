#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/idx.h>
#include <levin/data/mnist.h>

#include "damage.h"
#include "idx_files.h"

#include <cmath>
#include <filesystem>
#include <string>

using namespace levin;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

/// Writes the four files of a tiny dataset: `n` images of 28 x 28, labels 0, 1, ..., 9, 0, ...
void write_mnist(const fs::path& dir, std::uint32_t n, bool zipped) {
  std::string labels = idx_header(8, {n});
  for (std::uint32_t i = 0; i < n; ++i) labels += static_cast<char>(i % 10);
  const std::string images = idx_header(8, {n, 28, 28}) + counting(n * 784);
  for (const char* stem : {"train", "t10k"}) {
    const std::string suffix = zipped ? "-ubyte.gz" : "-ubyte";
    io::write_file(dir / (std::string(stem) + "-images-idx3" + suffix), zipped ? gzip(images) : images);
    io::write_file(dir / (std::string(stem) + "-labels-idx1" + suffix), zipped ? gzip(labels) : labels);
  }
}

}  // namespace

TEST_CASE("IDX files of every type") {
  const TempDir dir;
  const fs::path file = dir.path / "x";
  io::write_file(file, idx_header(8, {2, 3}) + counting(6));
  const Tensor bytes = data::read_idx(file);
  CHECK(bytes.dtype() == kUInt8);
  CHECK(bytes.sizes() == Shape{2, 3});
  CHECK(bytes.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5});

  io::write_file(file, idx_header(9, {2}) + std::string("\xff\x05"));
  CHECK(data::read_idx(file).to_vector<int>() == std::vector<int>{-1, 5});
  io::write_file(file, idx_header(0x0B, {2}) + std::string("\x01\x02\xff\xfe"));
  CHECK(data::read_idx(file).to_vector<int>() == std::vector<int>{258, -2});
  io::write_file(file, idx_header(0x0C, {1}) + std::string("\x00\x01\x00\x02", 4));
  CHECK(data::read_idx(file).to_vector<int>() == std::vector<int>{65538});
  io::write_file(file, idx_header(0x0D, {1}) + std::string("\x3f\xc0\x00\x00", 4));
  CHECK(data::read_idx(file).to_vector<double>() == std::vector<double>{1.5});
  io::write_file(file, idx_header(0x0E, {1}) + std::string("\xc0\x04\x00\x00\x00\x00\x00\x00", 8));
  CHECK(data::read_idx(file).to_vector<double>() == std::vector<double>{-2.5});
  io::write_file(file, idx_header(8, {0, 28, 28}));
  CHECK(data::read_idx(file).sizes() == Shape{0, 28, 28});
}

TEST_CASE("gzip is detected by its first bytes, not by the name") {
  const TempDir dir;
  const fs::path file = dir.path / "x";
  io::write_file(file, gzip(idx_header(8, {4}) + counting(4)));
  CHECK(data::read_idx(file).to_vector<int>() == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("a tensor read from a file outlives the reader and may be edited") {
  const TempDir dir;
  io::write_file(dir.path / "x", idx_header(8, {3}) + counting(3));
  const int64_t live = Storage::live_count();
  {
    const Tensor t = data::read_idx(dir.path / "x");
    t.data<std::uint8_t>()[0] = 7;
    CHECK(t.to_vector<int>() == std::vector<int>{7, 1, 2});
  }
  CHECK(Storage::live_count() == live);
}

TEST_CASE("damaged IDX files are refused with the values") {
  const TempDir dir;
  const fs::path file = dir.path / "x";
  const auto error = [&](const std::string& content) {
    io::write_file(file, content);
    return message_of([&] { data::read_idx(file); });
  };
  const std::string head = "[idx] " + file.string() + ": ";
  CHECK(error("") == head + "it has 0 bytes, too few for an IDX file. Fetch it again.");
  CHECK(error("PNG and more") ==
        head +
            "it begins with 0x504e4720, which is not an IDX magic number (2051 for images, 2049 "
            "for labels). Is this the right file?");
  CHECK(error(idx_header(7, {1}) + "x").find("it begins with 0x00000701") != std::string::npos);
  CHECK(error(idx_header(8, {2, 3}).substr(0, 9)) ==
        head + "it is truncated: the header needs 12 bytes, the file has 9. Fetch it again.");
  CHECK(error(idx_header(8, {2, 3}) + counting(5)) ==
        head +
            "shape (2, 3) of uint8 needs 6 bytes after the header, the file has 5: it is truncated. Fetch it again.");
  CHECK(error(idx_header(8, {2, 3}) + counting(7)) == head +
                                                          "shape (2, 3) of uint8 needs 6 bytes after the header, the "
                                                          "file has 7: it has trailing bytes. Fetch it again.");
  CHECK(error(idx_header(8, {0xffffffff, 0xffffffff, 0xffffffff})).find("more than any file holds") !=
        std::string::npos);
  CHECK(error(idx_header(8, {1, 1, 1, 1, 1, 1, 1, 1, 1}) + "x").find("not an IDX magic number") != std::string::npos);
  const std::string zipped = gzip(idx_header(8, {500}) + counting(500));
  CHECK(error(zipped.substr(0, zipped.size() - 9)).starts_with("[gunzip] " + file.string() + ": it ends early"));
}

TEST_CASE("truncated and changed IDX files are harmless") {
  const TempDir dir;
  const fs::path file = dir.path / "x";
  const std::string plain = idx_header(8, {3, 5}) + counting(15);
  for (const std::string& good : {plain, gzip(plain)}) {
    const int refused = damage(good, [&](const std::string& bytes) {
      io::write_file(file, bytes);
      data::read_idx(file);
    });
    CHECK(refused >= static_cast<int>(good.size()));  // every truncation, and more
  }
}

TEST_CASE("MNIST files become normalised images and labels") {
  for (const bool zipped : {false, true}) {
    const TempDir dir;
    write_mnist(dir.path, 12, zipped);
    const data::FashionMnist fashion("train", dir.path);
    CHECK(fashion.size() == 12);
    const auto [x, y] = fashion.all();
    CHECK(x.sizes() == Shape{12, 1, 28, 28});
    CHECK(x.dtype() == kFloat32);
    CHECK(y.to_vector<int>() == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1});
    // The bits of PyTorch's x.float().div(255).sub(.2860).div(.3530).
    for (const int64_t i : {int64_t{0}, int64_t{100}, int64_t{255}, int64_t{256}, int64_t{9000}}) {
      const float expected = (static_cast<float>(i % 256) / 255.f - 0.2860f) / 0.3530f;
      CHECK(x.data<float>()[i] == expected);
    }
    const data::Mnist digits("test", dir.path);
    CHECK(digits.all()[0].data<float>()[255] == (1.f - 0.1307f) / 0.3081f);
    Generator rng;
    const Sample one = digits.get(11, rng);
    CHECK(one[0].sizes() == Shape{1, 28, 28});
    CHECK(one[1].item<int>() == 1);
    CHECK(one[0].to_vector<float>()[5] == digits.all()[0].to_vector<float>()[11 * 784 + 5]);
  }
}

TEST_CASE("data/missing_dataset_message") {
  const TempDir dir;
  CHECK(
      message_of([&] { data::FashionMnist("train", dir.path); }) ==
      "[fashion_mnist] " + (dir.path / "train-labels-idx1-ubyte.gz").string() +
          " was not found. Install Debian's package dataset-fashion-mnist (apt-get install dataset-fashion-mnist), or "
          "give the folder of the files as `dir` (--data in the sample programs).");
  CHECK(message_of([&] { data::Mnist("test", dir.path); }).find("Give the folder of the four MNIST files as `dir`") !=
        std::string::npos);
  CHECK(message_of([&] { data::FashionMnist("val", dir.path); }) ==
        "[fashion_mnist] \"val\" is not a split: write \"train\" or \"test\".");

  write_mnist(dir.path, 3, false);
  const fs::path labels = dir.path / "train-labels-idx1-ubyte", images = dir.path / "train-images-idx3-ubyte";
  io::write_file(labels, idx_header(8, {2}) + counting(2));
  CHECK(message_of([&] { data::FashionMnist("train", dir.path); }) ==
        "[fashion_mnist] " + labels.string() +
            " holds uint8 of shape (2,), not one uint8 label for each of the 3 images. Do the two files belong "
            "together?");
  io::write_file(labels, idx_header(8, {3}) + std::string("\x01\x0a\x02"));
  CHECK(message_of([&] { data::FashionMnist("train", dir.path); }) ==
        "[fashion_mnist] " + labels.string() + ": label 10 of image 1 is out of range; the classes are 0 to 9.");
  io::write_file(images, idx_header(8, {3}) + counting(3));
  CHECK(message_of([&] { data::FashionMnist("train", dir.path); }).find("not uint8 images (N, 28, 28)") !=
        std::string::npos);
}

TEST_CASE("the real Fashion-MNIST") {
  REQUIRE_MESSAGE(fs::exists(data::kFashionMnistDir), "apt-get install dataset-fashion-mnist");
  const data::FashionMnist test("test");
  CHECK(test.size() == 10000);
  const auto [x, y] = test.all();
  std::vector<int> counts(10);
  for (const int label : y.to_vector<int>()) ++counts[static_cast<std::size_t>(label)];
  for (const int c : counts) CHECK(c == 1000);
  double sum = 0, squares = 0;
  for (const double v : x.to_vector<double>()) {
    sum += v;
    squares += v * v;
  }
  // The constants are the training set's mean and standard deviation to four digits; the test set's differ in the
  // third.
  const double n = static_cast<double>(x.numel()), mean = sum / n;
  CHECK(std::abs(mean) < 0.01);
  CHECK(std::abs(std::sqrt(squares / n - mean * mean) - 1) < 0.01);
}
