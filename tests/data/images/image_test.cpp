#include <doctest/doctest.h>
#include <levin/core/io.h>
#include <levin/data/dataloader.h>
#include <levin/data/image.h>

#include "data/damage.h"
#include "support/files.h"
#include "support/paths.h"

#include <cmath>
#include <numeric>
#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;
namespace fs = std::filesystem;

namespace {

fs::path stored(const std::string& name) { return source_dir() / "tests/data/files" / name; }

/// The formula of tests/data/files/README.md as (C, H, W).
std::vector<int> formula(int channels, int height, int width, int seed) {
  std::vector<int> v;
  for (int k = 0; k < channels; ++k) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) v.push_back((x * 37 + y * 91 + k * 53 + x * y * 7 + seed) % 256);
    }
  }
  return v;
}

Tensor random_image(int channels, int height, int width, int seed) {
  return from_data(formula(channels, height, width, seed), {channels, height, width}, {.dtype = kUInt8});
}

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s)); }

double mean_difference(const Tensor& image, const std::vector<int>& expected) {
  const auto v = image.to_vector<int>();
  REQUIRE(v.size() == expected.size());
  double sum = 0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += std::abs(v[i] - expected[i]);
  return sum / static_cast<double>(v.size());
}

}  // namespace

TEST_CASE("PNG round trip with 1 to 4 channels") {
  const TempDir dir;
  for (int channels = 1; channels <= 4; ++channels) {
    for (const auto& [h, w] : {std::pair{1, 1}, {5, 6}, {33, 31}}) {
      const Tensor image = random_image(channels, h, w, 11);
      write_png(dir.path / "x.png", image);
      const Tensor back = read_image(dir.path / "x.png");
      CHECK(back.sizes() == image.sizes());
      CHECK(back.to_vector<int>() == image.to_vector<int>());
      CHECK(encode_png(image, 0).size() >= encode_png(image, 9).size());
      CHECK(encode_png(image) == encode_png(image));
    }
  }
  CHECK_THROWS_AS(encode_png(empty({3, 2, 2})), DTypeError);
  CHECK_THROWS_AS(encode_png(random_image(1, 2, 2, 0).squeeze(0)), ShapeError);
  CHECK_THROWS_AS(encode_png(empty({3, 0, 2}, {.dtype = kUInt8})), ShapeError);
  CHECK_THROWS_AS(encode_png(random_image(1, 2, 2, 0), 10), ValueError);
  CHECK_THROWS_AS(write_png(dir.path / "none" / "x.png", random_image(1, 2, 2, 0)), IoError);
}

TEST_CASE("PNG files of other programs") {
  CHECK(read_image(stored("rgb.png")).to_vector<int>() == formula(3, 5, 6, 11));
  const auto gray = formula(1, 7, 9, 3);
  const Tensor la = read_image(stored("la.png"));
  CHECK(la.sizes() == Shape{2, 7, 9});
  for (int i = 0; i < 63; ++i) {
    CHECK(la.data<std::uint8_t>()[i] == gray[static_cast<std::size_t>(i)]);
    CHECK(la.data<std::uint8_t>()[63 + i] == 255 - gray[static_cast<std::size_t>(i)]);
  }
  CHECK(read_image(stored("g16.png")).to_vector<int>() == gray);  // the upper bytes
  const auto bits = read_image(stored("bit.png")).to_vector<int>();
  for (std::size_t i = 0; i < bits.size(); ++i) CHECK(bits[i] == (gray[i] > 127 ? 255 : 0));
  const Tensor palette = read_image(stored("pal.png"));
  CHECK(palette.sizes() == Shape{3, 5, 6});
  CHECK(palette.select(0, 0).to_vector<int>() == std::vector<int>{25,  25,  120, 120, 183, 183, 120, 120, 183, 136,
                                                                  25,  25,  183, 136, 25,  120, 120, 183, 25,  120,
                                                                  120, 183, 25,  25,  120, 183, 136, 25,  120, 183});
}

TEST_CASE("JPEG decoding matches Pillow's") {
  const std::vector<int> red{17,  62,  123, 163, 148, 185, 116, 167, 195, 83,  42,  70,  196, 94,  51,
                             115, 171, 192, 63,  113, 176, 201, 17,  81,  131, 183, 127, 112, 155, 178};
  const Tensor rgb = read_image(stored("rgb.jpg"));
  CHECK(rgb.sizes() == Shape{3, 5, 6});
  CHECK(rgb.select(0, 0).to_vector<int>() == red);
  const Tensor gray = read_image(stored("gray.jpg"));
  CHECK(gray.sizes() == Shape{1, 7, 9});
  CHECK(gray.to_vector<int>()[0] == 1);
  CHECK(gray.to_vector<int>()[62] == 156);
  CHECK(mean_difference(gray, formula(1, 7, 9, 3)) < 6);
  const Tensor inks = read_image(stored("cmyk.jpg"));
  CHECK(inks.sizes() == Shape{3, 5, 6});
  CHECK(mean_difference(inks, formula(3, 5, 6, 11)) < 16);
  CHECK(read_image(stored("prog.jpg")).sizes() == Shape{3, 20, 20});
}

TEST_CASE("conversion to the requested channels") {
  const auto sizes = [](const char* name, ImageReadMode mode) { return read_image(stored(name), mode).sizes(); };
  CHECK(sizes("rgb.png", ImageReadMode::gray) == Shape{1, 5, 6});
  CHECK(sizes("rgb.png", ImageReadMode::rgb_alpha) == Shape{4, 5, 6});
  CHECK(sizes("la.png", ImageReadMode::rgb) == Shape{3, 7, 9});
  CHECK(sizes("la.png", ImageReadMode::gray_alpha) == Shape{2, 7, 9});
  CHECK(sizes("gray.jpg", ImageReadMode::rgb) == Shape{3, 7, 9});
  const Tensor three = read_image(stored("la.png"), ImageReadMode::rgb);
  CHECK(three.select(0, 2).to_vector<int>() == formula(1, 7, 9, 3));
  CHECK(read_image(stored("rgb.png"), ImageReadMode::rgb_alpha).select(0, 3).to_vector<int>() ==
        std::vector<int>(30, 255));
  CHECK(read_image(stored("rgb.png"), ImageReadMode::gray).to_vector<int>() ==  // Pillow's convert("L")
        std::vector<int>{54,  91,  128, 165, 173, 210, 145, 189, 204, 98,  65,  109, 207, 108, 82,
                         133, 184, 206, 71,  129, 187, 216, 47,  105, 162, 198, 113, 101, 166, 202});
}

TEST_CASE("files that are not images are refused with their name") {
  const TempDir dir;
  const fs::path file = dir.path / "x.png";
  io::write_file(file, std::string("GIF89a and so on"));
  CHECK(message_of([&] { read_image(file); }) ==
        "[image] " + file.string() + ": its 16 bytes begin neither as PNG nor as JPEG. Is this the right file?");
  // A hundred bytes that claim 20,000 x 20,000 pixels.
  std::string lies =
      encode_png(random_image(1, 4, 4, 0)).substr(0, 16) + std::string("\0\0\x4e\x20\0\0\x4e\x20\x08\0\0\0\0", 13);
  const std::uint32_t crc = io::crc32(bytes_of(lies).subspan(12));
  for (int shift = 24; shift >= 0; shift -= 8) lies += static_cast<char>((crc >> shift) & 0xff);
  lies += encode_png(random_image(1, 4, 4, 0)).substr(33);
  CHECK(message_of([&] {
          decode_image(bytes_of(lies));
        }).find("an image of 20000 x 20000 cannot be packed into its") != std::string::npos);
}

TEST_CASE("truncated and changed image files are harmless") {
  for (const char* name : {"rgb.jpg", "gray.jpg", "cmyk.jpg", "prog.jpg", "pal.png", "bit.png", "g16.png", "rgb.png"}) {
    const std::string good = io::read_text(stored(name));
    const int refused = damage(good, [](const std::string& bytes) { decode_image(bytes_of(bytes)); });
    INFO(name << ": " << refused << " of " << 4 * good.size());
    CHECK(refused >= static_cast<int>(good.size()));  // every truncation, and more
  }
}

TEST_CASE("make_grid matches torchvision's") {
  const Tensor images = from_data(formula(1, 2, 3, 0), {1, 1, 2, 3}, {.dtype = kUInt8});
  CHECK(make_grid(images).sizes() == Shape{3, 2, 3});  // one image has no frame
  std::vector<float> v(5 * 2 * 2);
  std::iota(v.begin(), v.end(), 0.f);
  const Tensor five = from_data(v, {5, 1, 2, 2});
  const Tensor grid = make_grid(five, {.nrow = 3, .padding = 1, .pad_value = -1});
  CHECK(grid.dtype() == kFloat32);
  CHECK(grid.sizes() == Shape{3, 7, 10});
  CHECK(grid.select(0, 2).to_vector<int>() == std::vector<int>{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                                               -1, 0,  1,  -1, 4,  5,  -1, 8,  9,  -1,  //
                                                               -1, 2,  3,  -1, 6,  7,  -1, 10, 11, -1,  //
                                                               -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                                               -1, 12, 13, -1, 16, 17, -1, -1, -1, -1,  //
                                                               -1, 14, 15, -1, 18, 19, -1, -1, -1, -1,  //
                                                               -1, -1, -1, -1, -1, -1, -1, -1, -1, -1});
  CHECK(make_grid(five).sizes() == Shape{3, 6, 22});  // 8 in a row, 2 pixels between
  CHECK(make_grid(five, {.normalize = true}).select(0, 0).to_vector<float>()[2 * 22 + 3] == 1.f / 19);
  const Tensor each = make_grid(five, {.padding = 0, .normalize = true, .scale_each = true});
  CHECK(each.select(0, 0).to_vector<float>()[2] == 0.f);
  CHECK(each.select(0, 0).to_vector<float>()[13] == 1.f);
  const Tensor ranged = make_grid(five, {.padding = 0, .normalize = true, .value_range = {{0, 10}}});
  CHECK(ranged.select(0, 0).to_vector<float>().back() == 1.f);
  CHECK(make_grid(std::vector<Tensor>{five.select(0, 0), five.select(0, 1)}).sizes() == Shape{3, 6, 10});
  CHECK(make_grid(empty({4, 5})).sizes() == Shape{3, 4, 5});
  CHECK_THROWS_AS(make_grid(empty({2, 2, 4, 4})), ShapeError);
  CHECK_THROWS_AS(make_grid(five, {.nrow = 0}), ValueError);
  CHECK_THROWS_AS(make_grid(five, {.normalize = true, .value_range = {{1, 1}}}), ValueError);
}

TEST_CASE("save_image rounds to bytes and clamps") {
  const TempDir dir;
  const fs::path file = dir.path / "x.png";
  save_image(from_data<float>({-1, 0, 0.5f, 1, 2, NAN}, {1, 2, 3}), file);
  const Tensor back = read_image(file);
  CHECK(back.sizes() == Shape{3, 2, 3});
  CHECK(back.select(0, 1).to_vector<int>() == std::vector<int>{0, 0, 128, 255, 255, 0});
  save_image(random_image(3, 4, 4, 1), file);
  CHECK(read_image(file).to_vector<int>() == formula(3, 4, 4, 1));
}

TEST_CASE("ImageFolder has a folder per class") {
  const TempDir dir;
  for (const char* name : {"dog", "cat"}) fs::create_directory(dir.path / name);
  fs::create_directory(dir.path / "cat" / "more");
  fs::copy_file(stored("rgb.jpg"), dir.path / "dog" / "1.JPG");
  fs::copy_file(stored("rgb.png"), dir.path / "cat" / "2.png");
  fs::copy_file(stored("cmyk.jpg"), dir.path / "cat" / "more" / "3.jpeg");
  io::write_file(dir.path / "cat" / "notes.txt", std::string("no image"));
  const ImageFolder data(dir.path);
  CHECK(data.classes() == std::vector<std::string>{"cat", "dog"});
  CHECK(data.size() == 3);
  CHECK(data.targets() == std::vector<int64_t>{0, 0, 1});
  for (const int workers : {0, 2}) {
    DataLoader loader(ImageFolder(dir.path, Compose{RandomCrop(4), ToFloat{}}),
                      {.batch_size = 3, .num_workers = workers, .seed = 1});
    for (const auto& [x, y] : loader) {
      CHECK(x.sizes() == Shape{3, 3, 4, 4});
      CHECK(x.dtype() == kFloat32);
      CHECK(y.to_vector<int>() == std::vector<int>{0, 0, 1});
    }
  }
  Generator rng;
  CHECK_THROWS_AS(data.get(3, rng), IndexError);
  io::write_file(dir.path / "cat" / "2.png", std::string("x"));
  DataLoader loader(data, {.num_workers = 2});
  CHECK(message_of([&] {
          for (const Batch& b : loader) static_cast<void>(b);
        }).find("index 0: [image] " + (dir.path / "cat" / "2.png").string()) != std::string::npos);

  CHECK(message_of([&] { ImageFolder(dir.path / "none"); }).find("is not a folder") != std::string::npos);
  CHECK(message_of([&] { ImageFolder(dir.path / "dog"); }).find("holds no folders") != std::string::npos);
  fs::create_directory(dir.path / "empty");
  CHECK(message_of([&] { ImageFolder{dir.path}; }).find("holds no .png, .jpg or .jpeg images") != std::string::npos);
}
