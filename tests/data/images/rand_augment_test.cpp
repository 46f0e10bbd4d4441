// Changes of images and RandAugment.
#include <doctest/doctest.h>
#include <levin/data/augment.h>

#include "data/damage.h"
#include "support/comparison.h"

#include <vector>

using namespace levin;
using namespace levin::data;
using namespace levin::test;

namespace {

/// Pixel (c, y, x) is (37 x + 91 y + 7 x y + 3 + 50 c) mod 256.
Tensor colors() {
  std::vector<int> v;
  for (int c = 0; c < 3; ++c)
    for (int y = 0; y < 4; ++y)
      for (int x = 0; x < 5; ++x) v.push_back((x * 37 + y * 91 + x * y * 7 + 3 + c * 50) % 256);
  return from_data(v, {3, 4, 5}, {.dtype = kUInt8});
}

struct Known {
  Augmentation change;
  double magnitude;
  std::vector<int> pixels;
};

}  // namespace

// The values of torchvision 0.26 (transforms.autoaugment._apply_op).
TEST_CASE("each change of an image gives torchvision's pixels") {
  const Known known[] = {
      {Augmentation::shear_x, 0.4, {3,   40,  77,  114, 151, 138, 182, 226, 14,  7,   236, 31,  82,  133, 7,
                                    78,  136, 194, 252, 7,   53,  90,  127, 164, 201, 188, 232, 20,  64,  7,
                                    30,  81,  132, 183, 7,   128, 186, 244, 46,  7,   103, 140, 177, 214, 251,
                                    238, 26,  70,  114, 7,   80,  131, 182, 233, 7,   178, 236, 38,  96,  7}},
      {Augmentation::shear_y, -0.4, {3,   7,   7,   7,   7,   94, 40,  77, 114, 7,   185, 138, 182, 226, 151,
                                     20,  236, 31,  82,  14,  53, 7,   7,  7,   7,   144, 90,  127, 164, 7,
                                     235, 188, 232, 20,  201, 70, 30,  81, 132, 64,  103, 7,   7,   7,   7,
                                     194, 140, 177, 214, 7,   29, 238, 26, 70,  251, 120, 80,  131, 182, 114}},
      {Augmentation::translate_x, 2.7, {7, 7, 3,   40,  77,  7, 7, 94, 138, 182, 7, 7, 185, 236, 31,
                                        7, 7, 20,  78,  136, 7, 7, 53, 90,  127, 7, 7, 144, 188, 232,
                                        7, 7, 235, 30,  81,  7, 7, 70, 128, 186, 7, 7, 103, 140, 177,
                                        7, 7, 194, 238, 26,  7, 7, 29, 80,  131, 7, 7, 120, 178, 236}},
      {Augmentation::translate_y, -1, {94, 138, 182, 226, 14,  185, 236, 31,  82, 133, 20,  78,  136, 194, 252,
                                       7,  7,   7,   7,   7,   144, 188, 232, 20, 64,  235, 30,  81,  132, 183,
                                       70, 128, 186, 244, 46,  7,   7,   7,   7,  7,   194, 238, 26,  70,  114,
                                       29, 80,  131, 182, 233, 120, 178, 236, 38, 96,  7,   7,   7,   7,   7}},
      {Augmentation::rotate, 20, {7,   77,  114, 114, 14,  3,   138, 182, 226, 133, 94, 236, 31,  82,  252,
                                  185, 78,  78,  136, 7,   7,   127, 164, 164, 64,  53, 188, 232, 20,  183,
                                  144, 30,  81,  132, 46,  235, 128, 128, 186, 7,   7,  177, 214, 214, 114,
                                  103, 238, 26,  70,  233, 194, 80,  131, 182, 96,  29, 178, 178, 236, 7}},
      {Augmentation::brightness, -0.3, {2,   28,  53, 79,  105, 65, 96, 127, 158, 9,   129, 165, 21,  57,  93,
                                        14,  54,  95, 135, 176, 37, 63, 88,  114, 140, 100, 131, 162, 14,  44,
                                        164, 21,  56, 92,  128, 49, 89, 130, 170, 32,  72,  98,  123, 149, 175,
                                        135, 166, 18, 49,  79,  20, 56, 91,  127, 163, 84,  124, 165, 26,  67}},
      {Augmentation::color, 0.5, {0,   20,  57,  94,  131, 74, 118, 176, 255, 0,   179, 255, 11,  62,  113,
                                  0,   58,  116, 188, 255, 58, 95,  132, 169, 206, 149, 193, 251, 0,   69,
                                  254, 0,   86,  137, 188, 75, 133, 191, 255, 12,  133, 170, 207, 244, 255,
                                  224, 255, 0,   61,  144, 0,  71,  161, 212, 255, 150, 208, 255, 0,   87}},
      {Augmentation::contrast, -0.6, {78,  92,  107, 122, 137, 114, 132, 149, 167, 82,  150, 171, 89,  109, 130,
                                      84,  108, 131, 154, 177, 98,  112, 127, 142, 157, 134, 152, 169, 84,  102,
                                      170, 88,  109, 129, 150, 104, 128, 151, 174, 95,  118, 132, 147, 162, 177,
                                      154, 172, 87,  104, 122, 88,  108, 129, 149, 170, 124, 148, 171, 92,  115}},
      {Augmentation::sharpness, -0.8, {3,   40,  77,  114, 151, 94, 122, 150, 162, 14,  185, 172, 94,  113, 133,
                                       20,  78,  136, 194, 252, 53, 90,  127, 164, 201, 144, 156, 168, 83,  64,
                                       235, 93,  112, 132, 183, 70, 128, 186, 244, 46,  103, 140, 177, 214, 251,
                                       194, 174, 89,  117, 114, 29, 111, 131, 150, 233, 120, 178, 236, 38,  96}},
      {Augmentation::posterize, 3, {0,   32,  64,  96,  128, 64, 128, 160, 224, 0,   160, 224, 0,   64,  128,
                                    0,   64,  128, 192, 224, 32, 64,  96,  160, 192, 128, 160, 224, 0,   64,
                                    224, 0,   64,  128, 160, 64, 128, 160, 224, 32,  96,  128, 160, 192, 224,
                                    192, 224, 0,   64,  96,  0,  64,  128, 160, 224, 96,  160, 224, 32,  96}},
      {Augmentation::solarize, 100, {3,  40, 77,  141, 104, 94, 117, 73,  29, 14, 70,  19,  31, 82, 122,
                                     20, 78, 119, 61,  3,   53, 90,  128, 91, 54, 111, 67,  23, 20, 64,
                                     20, 30, 81,  123, 72,  70, 127, 69,  11, 46, 152, 115, 78, 41, 4,
                                     61, 17, 26,  70,  141, 29, 80,  124, 73, 22, 135, 77,  19, 38, 96}},
      {Augmentation::auto_contrast, 0, {0,   37,  75,  113, 151, 93, 138, 183, 228, 11,  186, 238, 28,  80,  133,
                                        17,  76,  136, 195, 255, 37, 79,  121, 163, 206, 141, 191, 241, 0,   50,
                                        244, 11,  69,  127, 185, 56, 122, 188, 255, 29,  87,  129, 171, 213, 255,
                                        190, 240, 0,   49,  99,  3,  61,  119, 176, 234, 106, 172, 238, 13,  79}},
  };
  for (const Known& k : known) {
    CAPTURE(static_cast<int>(k.change));
    CHECK(augment(colors(), k.change, k.magnitude, 7).to_vector<int>() == k.pixels);
  }
  CHECK(equal(augment(colors(), Augmentation::identity, 1), colors()));
  CHECK(equal(augment(colors(), Augmentation::equalize, 0), colors()));  // too few pixels to change any
}

TEST_CASE("equalize spreads the values of a larger image as torchvision does") {
  std::vector<int> v;
  for (int y = 0; y < 32; ++y)
    for (int x = 0; x < 32; ++x) v.push_back((x * x + 3 * y) % 97);
  const auto pixels =
      augment(from_data(v, {1, 32, 32}, {.dtype = kUInt8}), Augmentation::equalize, 0).to_vector<int64_t>();
  const std::vector<int64_t> expected = {31, 36, 46, 63, 88, 120, 158, 205};
  CHECK(std::vector<int64_t>(pixels.begin() + 96, pixels.begin() + 104) == expected);
  int64_t sum = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) sum += pixels[i] * static_cast<int64_t>(i);
  CHECK(sum == 86202497);
}

TEST_CASE("RandAugment applies random changes, the same for the same generator") {
  bool changed = false, differs = false;
  const RandAugment strong({.num_ops = 3, .magnitude = 20});
  Tensor last;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    Generator rng(seed), again(seed);
    const Tensor out = strong(colors(), rng);
    CHECK(out.sizes() == Shape{3, 4, 5});
    CHECK(equal(out, strong(colors(), again)));
    changed |= !equal(out, colors());
    differs |= last.defined() && !equal(out, last);
    last = out;
  }
  CHECK(changed);
  CHECK(differs);
  Generator rng;
  CHECK(equal(RandAugment({.num_ops = 0})(colors(), rng), colors()));
  CHECK(message_of([] { RandAugment({.magnitude = 31}); }) ==
        "[rand_augment] num_ops is 2 and magnitude 31; use 0 or more, and 0 to num_magnitude_bins - 1 = 30.");
  CHECK(message_of([] {
          augment(ones({3, 4, 4}), Augmentation::rotate, 1);
        }) == "[augment] the image is float32; give uint8.");
  CHECK_THROWS_AS(augment(zeros({2, 4, 4}, kUInt8), Augmentation::color, 1), ShapeError);
}
