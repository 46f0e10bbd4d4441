#pragma once
// The toolkit's built-in vector types, with its sizes and alignments.

#define LEVIN_EMULATOR_VECTORS(name, T, size)                           \
  struct name##1 {                                                      \
    T x;                                                                \
  };                                                                    \
  struct alignas(2 * size) name##2 {                                    \
    T x, y;                                                             \
  };                                                                    \
  struct name##3 {                                                      \
    T x, y, z;                                                          \
  };                                                                    \
  struct alignas(4 * size < 16 ? 4 * size : 16) name##4 {               \
    T x, y, z, w;                                                       \
  };                                                                    \
  constexpr name##1 make_##name##1(T x) { return {x}; }                 \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

LEVIN_EMULATOR_VECTORS(char, signed char, 1)
LEVIN_EMULATOR_VECTORS(uchar, unsigned char, 1)
LEVIN_EMULATOR_VECTORS(short, short, 2)
LEVIN_EMULATOR_VECTORS(ushort, unsigned short, 2)
LEVIN_EMULATOR_VECTORS(int, int, 4)
LEVIN_EMULATOR_VECTORS(uint, unsigned int, 4)
LEVIN_EMULATOR_VECTORS(longlong, long long, 8)
LEVIN_EMULATOR_VECTORS(ulonglong, unsigned long long, 8)
LEVIN_EMULATOR_VECTORS(float, float, 4)
LEVIN_EMULATOR_VECTORS(double, double, 8)
#undef LEVIN_EMULATOR_VECTORS

/// Sizes of grids and blocks; omitted ones are 1.
struct dim3 {
  unsigned int x = 1, y = 1, z = 1;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1) : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
