#include <doctest/doctest.h>
#include <levin/core/dtype.h>
#include <levin/core/scalar.h>

#include <cmath>
#include <vector>

using namespace levin;

namespace {

/// PyTorch's torch.promote_types over f64 f32 f16 bf16 i64 i32 i16 i8 u8 bool c64 c128, in
/// DType's order.
constexpr DType f64 = DType::f64, f32 = DType::f32, f16 = DType::f16, b16 = DType::bf16, i64 = DType::i64,
                i32 = DType::i32, i16 = DType::i16, i8 = DType::i8, u8 = DType::u8, boo = DType::boolean;
constexpr DType c64 = DType::c64, cdb = DType::c128;
constexpr DType kPromotion[kDTypeCount][kDTypeCount] = {
    {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, cdb, cdb},
    {f64, f32, f32, f32, f32, f32, f32, f32, f32, f32, c64, cdb},
    {f64, f32, f16, f32, f16, f16, f16, f16, f16, f16, c64, cdb},
    {f64, f32, f32, b16, b16, b16, b16, b16, b16, b16, c64, cdb},
    {f64, f32, f16, b16, i64, i64, i64, i64, i64, i64, c64, cdb},
    {f64, f32, f16, b16, i64, i32, i32, i32, i32, i32, c64, cdb},
    {f64, f32, f16, b16, i64, i32, i16, i16, i16, i16, c64, cdb},
    {f64, f32, f16, b16, i64, i32, i16, i8, i16, i8, c64, cdb},
    {f64, f32, f16, b16, i64, i32, i16, i16, u8, u8, c64, cdb},
    {f64, f32, f16, b16, i64, i32, i16, i8, u8, boo, c64, cdb},
    {cdb, c64, c64, c64, c64, c64, c64, c64, c64, c64, c64, cdb},
    {cdb, cdb, cdb, cdb, cdb, cdb, cdb, cdb, cdb, cdb, cdb, cdb}};

/// Finds the nearest 16-bit value by searching all, with ties to the even pattern: the definition of rounding.
template <class T>
class NearestSearch {
 public:
  explicit NearestSearch(std::uint16_t infinity) : infinity_(infinity) {}
  std::uint16_t operator()(float x) const {
    const std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
    const double v = std::fabs(static_cast<double>(x));
    std::uint16_t low = 0, high = infinity_;  // value(low) <= v < value(high); infinity continues the spacing
    while (high - low > 1) {
      const auto middle = static_cast<std::uint16_t>((low + high) / 2);
      (value(middle) <= v ? low : high) = middle;
    }
    const double below = v - value(low), above = value(high) - v;
    const bool up = above < below || (above == below && low % 2 == 1);
    return static_cast<std::uint16_t>(sign | (up ? high : low));
  }

 private:
  double value(std::uint16_t bits) const {
    if (bits < infinity_) return static_cast<double>(static_cast<float>(T::from_bits(bits)));
    const auto last = static_cast<std::uint16_t>(infinity_ - 1), before = static_cast<std::uint16_t>(infinity_ - 2);
    return 2 * value(last) - value(before);
  }
  std::uint16_t infinity_;
};

template <class T>
void check_rounding(std::uint16_t infinity) {
  const NearestSearch<T> nearest(infinity);
  std::uint32_t bits = 1;
  int checked = 0;
  for (int i = 0; i < 200000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    const T got(x);
    if (got.bits != nearest(x)) FAIL_CHECK("float " << x << ": " << got.bits << " not " << nearest(x));
    ++checked;
  }
  CHECK(checked > 190000);
  // Half-way points and their neighbours over the whole range.
  for (std::uint16_t h = 0; h + 1 < infinity; ++h) {
    const double middle = (static_cast<double>(static_cast<float>(T::from_bits(h))) +
                           static_cast<double>(static_cast<float>(T::from_bits(static_cast<std::uint16_t>(h + 1))))) /
                          2;
    const auto m = static_cast<float>(middle);
    for (const float x : {std::nextafterf(m, 0.f), m, std::nextafterf(m, INFINITY)}) {
      if (T(x).bits != nearest(x)) FAIL_CHECK("near half-way " << x << ": " << T(x).bits << " not " << nearest(x));
    }
  }
}

}  // namespace

TEST_CASE("promotion is PyTorch's table") {
  for (int a = 0; a < kDTypeCount; ++a) {
    for (int b = 0; b < kDTypeCount; ++b) {
      CAPTURE(name_of(static_cast<DType>(a)));
      CAPTURE(name_of(static_cast<DType>(b)));
      CHECK(promote_types(static_cast<DType>(a), static_cast<DType>(b)) == kPromotion[a][b]);
    }
  }
}

TEST_CASE("a number widens a tensor's type only across categories") {
  CHECK(Scalar(2.5).promote_with(kHalf) == kHalf);
  CHECK(Scalar(2.5).promote_with(kInt64) == kFloat32);
  CHECK(Scalar(2.5).promote_with(kBool) == kFloat32);
  CHECK(Scalar(3).promote_with(kUInt8) == kUInt8);
  CHECK(Scalar(3).promote_with(kBool) == kInt64);
  CHECK(Scalar(true).promote_with(kInt16) == kInt16);
  CHECK(Scalar(-2.9).to<std::int64_t>() == -2);
}

TEST_CASE("names and sizes") {
  CHECK(name_of(kFloat32) == "float32");
  CHECK(name_of(kBFloat16) == "bfloat16");
  CHECK(name_of(kBool) == "bool");
  CHECK(size_of(kFloat64) == 8);
  CHECK(size_of(kBool) == 1);
  CHECK_THROWS_WITH_AS(dispatch_floating(kInt64, "exp", []<class T>() {}),
                       "[exp] int64 is not accepted here, only floating-point types. Convert it with x.to(...).",
                       DTypeError);
}

TEST_CASE("default dtype") {
  CHECK(default_dtype() == kFloat32);
  set_default_dtype(kDouble);
  CHECK(default_dtype() == kDouble);
  CHECK(Scalar(2.5).promote_with(kInt64) == kDouble);
  set_default_dtype(kFloat);
  CHECK_THROWS_AS(set_default_dtype(kInt64), DTypeError);
}

TEST_CASE("all 65536 halves survive the conversion to float and back") {
  for (std::uint32_t b = 0; b < 65536; ++b) {
    const auto bits = static_cast<std::uint16_t>(b);
    const float f = Half::from_bits(bits);
    if (std::isnan(f)) {
      CHECK_MESSAGE((std::isnan(static_cast<float>(Half(f))) && (bits & 0x7c00) == 0x7c00), b);
    } else if (Half(f).bits != bits) {
      FAIL_CHECK(b << " became " << Half(f).bits);
    }
    const float g = BFloat16::from_bits(bits);
    if (!std::isnan(g) && BFloat16(g).bits != bits) FAIL_CHECK("bfloat16 " << b);
  }
  CHECK(static_cast<float>(Half::from_bits(0x0001)) == 0x1p-24f);
  CHECK(static_cast<float>(Half::from_bits(0x7bff)) == 65504.f);
  CHECK(std::isinf(static_cast<float>(Half(65520.f))));
  CHECK(static_cast<float>(Half(65519.996f)) == 65504.f);
  CHECK(Half(0x1p-25f).bits == 0);           // half of the smallest value rounds to even
  CHECK(Half(0x1.000002p-25f).bits == 1);
  CHECK(std::isnan(static_cast<float>(BFloat16(NAN))));
}

TEST_CASE("conversion to half rounds to nearest even") { check_rounding<Half>(0x7c00); }
TEST_CASE("conversion to bfloat16 rounds to nearest even") { check_rounding<BFloat16>(0x7f80); }
