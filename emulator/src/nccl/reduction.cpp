#include "reduction.h"

#include <levin/emulator/bfloat16.h>
#include <levin/emulator/float16_math.h>
#include <levin/emulator/half.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace levin::emulator::nccl {

namespace {

template <class T>
concept Integer = std::is_integral_v<T>;

/// Overflow wraps around, as on the device.
template <class T>
T add(T a, T b) {
  if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

template <class T>
T multiply(T a, T b) {
  if constexpr (Integer<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

template <class T>
T smaller(T a, T b) {
  if constexpr (Integer<T>) {
    return a < b ? a : b;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fmin(a, b);
  } else {
    return __hmin(a, b);
  }
}

template <class T>
T larger(T a, T b) {
  if constexpr (Integer<T>) {
    return a < b ? b : a;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::fmax(a, b);
  } else {
    return __hmax(a, b);
  }
}

/// Returns 1/n rounded as by NCCL: to float first, except for double.
template <class T>
T share(int ranks) {
  if constexpr (std::is_same_v<T, double>) {
    return 1.0 / ranks;
  } else {
    return T(static_cast<float>(1.0 / ranks));
  }
}

/// Elements may be unaligned, as in chunks of messages.
template <class T>
T load(const char* p, std::size_t i) {
  T value;
  std::memcpy(&value, p + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void store(char* p, std::size_t i, T value) {
  std::memcpy(p + i * sizeof(T), &value, sizeof(T));
}

template <class F>
void with_type(ncclDataType_t type, F&& f) {
  switch (type) {
    case ncclInt8:
      return f(std::int8_t{});
    case ncclUint8:
      return f(std::uint8_t{});
    case ncclInt32:
      return f(std::int32_t{});
    case ncclUint32:
      return f(std::uint32_t{});
    case ncclInt64:
      return f(std::int64_t{});
    case ncclUint64:
      return f(std::uint64_t{});
    case ncclFloat16:
      return f(__half{});
    case ncclFloat32:
      return f(float{});
    case ncclFloat64:
      return f(double{});
    case ncclBfloat16:
      return f(__nv_bfloat16{});
    default:  // 8-bit floats are copied, not reduced
      return;
  }
}

template <class T>
void combine_as(ncclRedOp_t op, int ranks, char* partial, const char* own, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T mine = load<T>(own, i), sum = load<T>(partial, i);
    if constexpr (!Integer<T>) {
      if (op == ncclAvg) mine = multiply(mine, share<T>(ranks));
    }
    switch (op) {
      case ncclProd:
        sum = multiply(mine, sum);
        break;
      case ncclMax:
        sum = larger(mine, sum);
        break;
      case ncclMin:
        sum = smaller(mine, sum);
        break;
      default:
        sum = add(mine, sum);
    }
    store(partial, i, sum);
  }
}

}  // namespace

void Reduction::enter(char* out, const char* in, std::size_t count) const {
  with_type(type, [&]<class T>(T) {
    if (out != in) std::memcpy(out, in, count * sizeof(T));
    if constexpr (!Integer<T>) {
      if (op != ncclAvg) return;
      for (std::size_t i = 0; i < count; ++i) store(out, i, multiply(load<T>(out, i), share<T>(ranks)));
    }
  });
}

void Reduction::combine(char* partial, const char* own, std::size_t count) const {
  with_type(type, [&]<class T>(T) { combine_as<T>(op, ranks, partial, own, count); });
}

void Reduction::finish(char* result, std::size_t count) const {
  if (op != ncclAvg) return;
  with_type(type, [&]<class T>(T) {
    if constexpr (Integer<T>) {
      for (std::size_t i = 0; i < count; ++i)
        store(result, i, static_cast<T>(load<T>(result, i) / static_cast<T>(ranks)));
    }
  });
}

}  // namespace levin::emulator::nccl
