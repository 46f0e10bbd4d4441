#pragma once
// The toolkit's __nv_bfloat16 and __nv_bfloat162.

#include <levin/emulator/half.h>

struct __nv_bfloat16 : levin::emulator::float16::Base<levin::emulator::float16::Bfloat16> {
  using Base::Base;
  __nv_bfloat16() = default;
  explicit __nv_bfloat16(__half value) : __nv_bfloat16(static_cast<float>(value)) {}
};

inline __half::__half(__nv_bfloat16 value) : __half(static_cast<float>(value)) {}

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;

  __nv_bfloat162() = default;
  constexpr __nv_bfloat162(const __nv_bfloat16& a, const __nv_bfloat16& b) : x(a), y(b) {}
  constexpr __nv_bfloat162(const __nv_bfloat162_raw& raw) : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
  constexpr operator __nv_bfloat162_raw() const {
    return {static_cast<__nv_bfloat16_raw>(x).x, static_cast<__nv_bfloat16_raw>(y).x};
  }
};

static_assert(sizeof(__nv_bfloat16) == 2 && alignof(__nv_bfloat16) == 2);
static_assert(sizeof(__nv_bfloat162) == 4 && alignof(__nv_bfloat162) == 4);
static_assert(std::is_trivially_default_constructible_v<__nv_bfloat162> &&
              std::is_trivially_copyable_v<__nv_bfloat162>);

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

LEVIN_EMULATOR_FLOAT16_CONVERSIONS(__nv_bfloat16, __nv_bfloat162, bfloat16, bfloat162)

#define CUDART_INF_BF16 __ushort_as_bfloat16(0x7f80)
#define CUDART_NAN_BF16 __ushort_as_bfloat16(0x7fff)
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(0x0001)
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(0x7f7f)
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(0x8000)
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(0x0000)
#define CUDART_ONE_BF16 __ushort_as_bfloat16(0x3f80)
