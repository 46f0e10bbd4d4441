#pragma once
// The intrinsics that convert to and from the 16-bit floats and unpack pairs. The two types' names differ only in
// "half" and "bfloat16", so each list is written once.

#define LEVIN_EMULATOR_FLOAT16_CONVERSIONS(T, T2, name, name2)                                               \
  inline T __float2##name(float a) { return T(a); }                                                          \
  inline T __double2##name(double a) { return T(a); }                                                        \
  inline float __##name##2float(T a) { return T::Format::decode(levin::emulator::float16::bits_of(a)); }     \
  inline unsigned short __##name##_as_ushort(T a) { return levin::emulator::float16::bits_of(a); }           \
  inline short __##name##_as_short(T a) { return static_cast<short>(levin::emulator::float16::bits_of(a)); } \
  inline T __ushort_as_##name(unsigned short a) { return levin::emulator::float16::from_bits<T>(a); }        \
  inline T __short_as_##name(short a) {                                                                      \
    return levin::emulator::float16::from_bits<T>(static_cast<unsigned short>(a));                           \
  }                                                                                                          \
  inline signed char __##name##2char_rz(T a) { return static_cast<signed char>(a); }                         \
  inline unsigned char __##name##2uchar_rz(T a) { return static_cast<unsigned char>(a); }                    \
  LEVIN_EMULATOR_FLOAT16_PAIRS(T, T2, name, name2)                                                           \
  LEVIN_EMULATOR_FLOAT16_DIRECTION(T, name, rn, nearest)                                                     \
  LEVIN_EMULATOR_FLOAT16_DIRECTION(T, name, rz, zero)                                                        \
  LEVIN_EMULATOR_FLOAT16_DIRECTION(T, name, rd, down)                                                        \
  LEVIN_EMULATOR_FLOAT16_DIRECTION(T, name, ru, up)

#define LEVIN_EMULATOR_FLOAT16_PAIRS(T, T2, name, name2)                                                \
  inline T2 make_##name2(T x, T y) { return T2(x, y); }                                                 \
  inline T2 __halves2##name2(T x, T y) { return T2(x, y); }                                             \
  inline T2 __##name##2##name2(T a) { return T2(a, a); }                                                \
  inline T2 __float2##name2##_rn(float a) { return T2(T(a), T(a)); }                                    \
  inline T2 __floats2##name2##_rn(float x, float y) { return T2(T(x), T(y)); }                          \
  inline T2 __float22##name2##_rn(float2 a) { return T2(T(a.x), T(a.y)); }                              \
  inline float2 __##name2##2float2(T2 a) { return {static_cast<float>(a.x), static_cast<float>(a.y)}; } \
  inline float __low2float(T2 a) { return static_cast<float>(a.x); }                                    \
  inline float __high2float(T2 a) { return static_cast<float>(a.y); }                                   \
  inline T __low2##name(T2 a) { return a.x; }                                                           \
  inline T __high2##name(T2 a) { return a.y; }                                                          \
  inline T2 __low2##name2(T2 a) { return T2(a.x, a.x); }                                                \
  inline T2 __high2##name2(T2 a) { return T2(a.y, a.y); }                                               \
  inline T2 __lows2##name2(T2 a, T2 b) { return T2(a.x, b.x); }                                         \
  inline T2 __highs2##name2(T2 a, T2 b) { return T2(a.y, b.y); }                                        \
  inline T2 __lowhigh2highlow(T2 a) { return T2(a.y, a.x); }

#define LEVIN_EMULATOR_FLOAT16_DIRECTION(T, name, suffix, rounding)                 \
  inline T __float2##name##_##suffix(float a) {                                     \
    using namespace levin::emulator::float16;                                       \
    return from_bits<T>(encode<T::Format>(a, levin::emulator::Rounding::rounding)); \
  }                                                                                 \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, int, int, suffix, rounding)               \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, unsigned int, uint, suffix, rounding)     \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, short, short, suffix, rounding)           \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, unsigned short, ushort, suffix, rounding) \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, long long, ll, suffix, rounding)          \
  LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, unsigned long long, ull, suffix, rounding)

#define LEVIN_EMULATOR_FLOAT16_INTEGER(T, name, I, integer, suffix, rounding)                                     \
  inline T __##integer##2##name##_##suffix(I i) { return __float2##name##_##suffix(levin::emulator::to_odd(i)); } \
  inline I __##name##2##integer##_##suffix(T a) {                                                                 \
    return levin::emulator::to_integer<I>(static_cast<float>(a), levin::emulator::Rounding::rounding);            \
  }
