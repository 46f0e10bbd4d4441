#pragma once
// The toolkit's __half and __half2.

#include <levin/emulator/float16_base.h>
#include <levin/emulator/float16_conversions.h>
#include <levin/emulator/vector_types.h>

struct __nv_bfloat16;

struct __half : levin::emulator::float16::Base<levin::emulator::float16::Binary16> {
  using Base::Base;
  __half() = default;
  explicit __half(__nv_bfloat16 value);
};

struct alignas(4) __half2 {
  __half x, y;

  __half2() = default;
  constexpr __half2(const __half& a, const __half& b) : x(a), y(b) {}
  constexpr __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
  constexpr operator __half2_raw() const { return {static_cast<__half_raw>(x).x, static_cast<__half_raw>(y).x}; }
};

static_assert(sizeof(__half) == 2 && alignof(__half) == 2 && sizeof(__half2) == 4 && alignof(__half2) == 4);
static_assert(std::is_trivially_default_constructible_v<__half2> && std::is_trivially_copyable_v<__half2>);

using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using __nv_half_raw = __half_raw;
using __nv_half2_raw = __half2_raw;

LEVIN_EMULATOR_FLOAT16_CONVERSIONS(__half, __half2, half, half2)

#define CUDART_INF_FP16 __ushort_as_half(0x7c00)
#define CUDART_NAN_FP16 __ushort_as_half(0x7fff)
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(0x0001)
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(0x7bff)
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(0x8000)
#define CUDART_ZERO_FP16 __ushort_as_half(0x0000)
#define CUDART_ONE_FP16 __ushort_as_half(0x3c00)
