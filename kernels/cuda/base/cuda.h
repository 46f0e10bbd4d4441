#pragma once
// Included by every CUDA source: the toolkit (or the emulator in its place), spellings that both compilers accept, and
// small helpers that kernels share.

#include <levin/core/dtype.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#if defined(__CUDACC__)
/// Declares an array in shared memory: LEVIN_SHARED(float, tile, 32, 33) declares float tile[32][33].
#define LEVIN_SHARED(T, name, ...) __shared__ ::levin::kernels::cuda::Array<T, __VA_ARGS__> name
#define LEVIN_PRAGMA_UNROLL _Pragma("unroll")
#define LEVIN_PRAGMA_NO_UNROLL _Pragma("unroll 1")
#else
#define LEVIN_SHARED(T, name, ...)                                                                     \
  static constexpr char name##_declaration = 0;                                                        \
  using name##_type = ::levin::kernels::cuda::Array<T, __VA_ARGS__>;                                   \
  auto& name = *static_cast<name##_type*>(::levin::emulator::shared_array(                             \
      &name##_declaration, sizeof(name##_type), alignof(name##_type) < 16 ? 16 : alignof(name##_type), \
      ::levin::emulator::Site::current()))
#define LEVIN_PRAGMA_UNROLL
#define LEVIN_PRAGMA_NO_UNROLL
#endif

namespace levin::kernels::cuda {

namespace detail {
template <class T, int... Sizes>
struct ArrayOf;
template <class T>
struct ArrayOf<T> {
  using type = T;
};
template <class T, int First, int... Rest>
struct ArrayOf<T, First, Rest...> {
  using type = typename ArrayOf<T, Rest...>::type[First];
};
}  // namespace detail

/// T[Sizes]...
template <class T, int... Sizes>
using Array = typename detail::ArrayOf<T, Sizes...>::type;

/// Returns the block's dynamic shared memory, whose size the launch gives; aligned to 1024 bytes on sm_90, else to 16.
template <class T>
__device__ inline T* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ __align__(1024) unsigned char levin_dynamic_shared[];
  return reinterpret_cast<T*>(levin_dynamic_shared);
#else
  return static_cast<T*>(emulator::dynamic_shared_memory(emulator::Site::current()));
#endif
}

/// The type in which a kernel sees the elements of a tensor: __half for Half, __nv_bfloat16 for BFloat16.
template <class T>
using DeviceType = std::conditional_t<std::is_same_v<T, Half>, __half,
                                      std::conditional_t<std::is_same_v<T, BFloat16>, __nv_bfloat16, T>>;

/// The type in which a kernel computes: float for the 16-bit floats.
template <class T>
using ComputeType = std::conditional_t<std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>, float, T>;

/// Converts between any two element types with one rounding: to nearest even for floats, towards zero for integers.
template <class To, class From>
__device__ inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, __half>) {
    return convert<To>(__half2float(x));
  } else if constexpr (std::is_same_v<From, __nv_bfloat16>) {
    return convert<To>(__bfloat162float(x));
  } else if constexpr (std::is_same_v<To, __half>) {
    return __float2half_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, __nv_bfloat16>) {
    return __float2bfloat16_rn(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else {
    return static_cast<To>(x);
  }
}

/// N neighbouring elements, loaded and stored by one instruction if N * sizeof(T) is at most 16.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T values[N];
  __device__ T& operator[](int i) { return values[i]; }
  __device__ const T& operator[](int i) const { return values[i]; }
};

/// Returns the V at `p`, which must be aligned to V's size; the emulator reports a misaligned address.
#if defined(__CUDACC__)
template <class V, class T>
__device__ inline auto& vector_at(T* p) {
  return *reinterpret_cast<std::conditional_t<std::is_const_v<T>, const V, V>*>(p);
}
template <int N, class T>
__device__ inline auto& pack_at(T* p) {
  return vector_at<Pack<std::remove_const_t<T>, N>>(p);
}
#else
template <class V, class T>
inline auto& vector_at(T* p, emulator::Site site = emulator::Site::current()) {
  if (reinterpret_cast<std::uintptr_t>(p) % alignof(V) != 0) emulator::fail_misaligned(p, alignof(V), site);
  return *reinterpret_cast<std::conditional_t<std::is_const_v<T>, const V, V>*>(p);
}
template <int N, class T>
inline auto& pack_at(T* p, emulator::Site site = emulator::Site::current()) {
  return vector_at<Pack<std::remove_const_t<T>, N>>(p, site);
}
#endif

/// Returns this thread's index in a one-dimensional grid; with grid_threads(), the number of threads, for grid-stride
/// loops.
__device__ inline std::int64_t global_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_threads() { return static_cast<std::int64_t>(gridDim.x) * blockDim.x; }

/// Calls f.template operator()<T>() with an unsigned integer type of 1, 2, 4 or 8 bytes.
template <class F>
auto with_element(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace levin::kernels::cuda
