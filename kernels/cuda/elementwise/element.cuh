#pragma once
// Loads and stores of one element or one pack, of the type that the kernel is compiled for or of any type.

#include "kernels/cuda/elementwise/plan.h"

#include <cstring>

namespace levin::kernels::cuda::elementwise {

/// The dtype of a kernel's element type.
template <class T>
inline constexpr DType dtype_of_device = dtype_of<T>;
template <>
inline constexpr DType dtype_of_device<__half> = DType::f16;
template <>
inline constexpr DType dtype_of_device<__nv_bfloat16> = DType::bf16;

/// As convert(), but floats are converted to narrow integers through 64 bits, where they wrap as on the CPU.
template <class To, class From>
__device__ inline To element_cast(From x) {
  if constexpr (std::is_integral_v<To> && !std::is_same_v<To, bool> && sizeof(To) < 4 && !std::is_integral_v<From>) {
    return static_cast<To>(convert<std::int64_t>(x));
  } else {
    return convert<To>(x);
  }
}

template <class T>
__device__ inline T number_from_bits(std::uint64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// Loads element `at` of an array of any type. Not inlined: ten conversions per use would be most of a kernel.
template <class To>
__device__ __attribute__((noinline)) To load_any(const void* p, std::int64_t at, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return element_cast<To>(static_cast<const double*>(p)[at]);
    case DType::f32:
      return element_cast<To>(static_cast<const float*>(p)[at]);
    case DType::f16:
      return element_cast<To>(static_cast<const __half*>(p)[at]);
    case DType::bf16:
      return element_cast<To>(static_cast<const __nv_bfloat16*>(p)[at]);
    case DType::i64:
      return element_cast<To>(static_cast<const std::int64_t*>(p)[at]);
    case DType::i32:
      return element_cast<To>(static_cast<const std::int32_t*>(p)[at]);
    case DType::i16:
      return element_cast<To>(static_cast<const std::int16_t*>(p)[at]);
    case DType::i8:
      return element_cast<To>(static_cast<const std::int8_t*>(p)[at]);
    case DType::u8:
      return element_cast<To>(static_cast<const std::uint8_t*>(p)[at]);
    case DType::boolean:
      return element_cast<To>(static_cast<const bool*>(p)[at]);
    default:  // no kernel sees complex types
      break;
  }
  return To{};
}

template <class From>
__device__ __attribute__((noinline)) void store_any(void* p, std::int64_t at, DType dtype, From x) {
  switch (dtype) {
    case DType::f64:
      static_cast<double*>(p)[at] = element_cast<double>(x);
      break;
    case DType::f32:
      static_cast<float*>(p)[at] = element_cast<float>(x);
      break;
    case DType::f16:
      static_cast<__half*>(p)[at] = element_cast<__half>(x);
      break;
    case DType::bf16:
      static_cast<__nv_bfloat16*>(p)[at] = element_cast<__nv_bfloat16>(x);
      break;
    case DType::i64:
      static_cast<std::int64_t*>(p)[at] = element_cast<std::int64_t>(x);
      break;
    case DType::i32:
      static_cast<std::int32_t*>(p)[at] = element_cast<std::int32_t>(x);
      break;
    case DType::i16:
      static_cast<std::int16_t*>(p)[at] = element_cast<std::int16_t>(x);
      break;
    case DType::i8:
      static_cast<std::int8_t*>(p)[at] = element_cast<std::int8_t>(x);
      break;
    case DType::u8:
      static_cast<std::uint8_t*>(p)[at] = element_cast<std::uint8_t>(x);
      break;
    case DType::boolean:
      static_cast<bool*>(p)[at] = element_cast<bool>(x);
      break;
    default:
      break;
  }
}

/// Converts `x` to an integer type or bool: kernels for all integers compute in 64 bits, whose low bits are correct.
__device__ inline std::int64_t wrap(std::int64_t x, DType dtype) {
  switch (dtype) {
    case DType::i32:
      return static_cast<std::int32_t>(x);
    case DType::i16:
      return static_cast<std::int16_t>(x);
    case DType::i8:
      return static_cast<std::int8_t>(x);
    case DType::u8:
      return static_cast<std::uint8_t>(x);
    case DType::boolean:
      return x != 0;
    default:
      return x;
  }
}

/// True if elements of type `dtype` have a kernel's own T; 64-bit integers also stand for narrower ones.
template <class T>
__device__ inline bool is_own(DType dtype, DType compute) {
  return dtype == dtype_of_device<T> && (!std::is_same_v<T, std::int64_t> || compute == dtype);
}

/// Returns element `at` of operand k, or the operand's number.
template <class T>
__device__ inline T load_element(const Operands& o, int k, std::int64_t at) {
  const void* p = o.pointers[k];
  if (!p) return number_from_bits<T>(o.numbers[k]);
  const DType dtype = o.dtypes[k];
  if (is_own<T>(dtype, o.compute)) return static_cast<const T*>(p)[at];
  if constexpr (std::is_same_v<T, std::int64_t>) {
    if (o.compute == DType::boolean) return load_any<bool>(p, at, dtype);
    return wrap(load_any<T>(p, at, dtype), o.compute);
  } else {
    return load_any<T>(p, at, dtype);
  }
}

template <class T>
__device__ inline void store_element(const Operands& o, std::int64_t at, T x) {
  const DType dtype = o.dtypes[0];
  if (is_own<T>(dtype, o.compute)) {
    static_cast<T*>(o.pointers[0])[at] = x;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    store_any(o.pointers[0], at, dtype, wrap(x, o.compute));
  } else {
    store_any(o.pointers[0], at, dtype, x);
  }
}

/// True if operand k is a number or has the same element along the whole last axis.
__device__ inline bool is_repeated(const Operands& o, int k) { return !o.pointers[k] || o.strides[k][o.dims - 1] == 0; }

/// Loads element i of the pack of operand k at `at`, in the compute type. The operand has type T or is a number.
template <class T>
__device__ inline ComputeType<T> load_of_pack(const Operands& o, int k, std::int64_t at, int i) {
  const T* p = static_cast<const T*>(o.pointers[k]);
  if (!p) return number_from_bits<ComputeType<T>>(o.numbers[k]);
  return convert<ComputeType<T>>(p[is_repeated(o, k) ? at : at + i]);
}

/// Loads the whole pack of operand k at `at`, in the compute type. The operand has type T or is a number.
template <class T, int Width>
__device__ inline Pack<ComputeType<T>, Width> load_pack(const Operands& o, int k, std::int64_t at) {
  using C = ComputeType<T>;
  Pack<C, Width> values;
  if (is_repeated(o, k)) {
    const C value = load_of_pack<T>(o, k, at, 0);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i) values[i] = value;
  } else {
    const auto pack = pack_at<Width>(static_cast<const T*>(o.pointers[k]) + at);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i) values[i] = convert<C>(pack[i]);
  }
  return values;
}

}  // namespace levin::kernels::cuda::elementwise
