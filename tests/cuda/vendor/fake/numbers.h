#pragma once
// Converts elements of the stand-in's matrices and images to double.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <bit>
#include <cstdint>
#include <cstdio>

#include "cuda/vendor/fake/fake.h"

namespace levin::test::fake {

enum class Type { f32, f64, f16, bf16 };

inline double load(const void* p, Type type, long long i) {
  switch (type) {
    case Type::f32:
      return static_cast<double>(static_cast<const float*>(p)[i]);
    case Type::f64:
      return static_cast<const double*>(p)[i];
    case Type::f16:
      return static_cast<double>(__half2float(static_cast<const __half*>(p)[i]));
    case Type::bf16:
      return static_cast<double>(__bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]));
  }
  return 0;
}

inline void store(void* p, Type type, long long i, double x) {
  switch (type) {
    case Type::f32:
      static_cast<float*>(p)[i] = static_cast<float>(x);
      return;
    case Type::f64:
      static_cast<double*>(p)[i] = x;
      return;
    case Type::f16:
      static_cast<__half*>(p)[i] = __float2half_rn(static_cast<float>(x));
      return;
    case Type::bf16:
      static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(static_cast<float>(x));
      return;
  }
}

/// Rounds to the type.
inline double rounded(double x, Type type) {
  double y = 0;
  store(&y, type, 0, x);
  return load(&y, type, 0);
}

/// Keeps the 10 bits of mantissa of TF32.
inline double to_tf32(double x) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return static_cast<double>(std::bit_cast<float>((bits + 0x1000u) & 0xffffe000u));
}

inline double scalar(const void* p, bool wide) {
  return wide ? *static_cast<const double*>(p) : static_cast<double>(*static_cast<const float*>(p));
}

template <class... A>
bool complain(const char* format, A... values) {
  char* const to = levin_fake_vendor()->complaint;
  if constexpr (sizeof...(values) == 0) {
    snprintf(to, sizeof(FakeVendor::complaint), "%s", format);
  } else {
    snprintf(to, sizeof(FakeVendor::complaint), format, values...);
  }
  return false;
}

/// Launches one thread per element.
template <class... P, class... A>
bool queue(void (*kernel)(P...), cudaStream_t stream, long long elements, A... args) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>((elements + 127) / 128));
  config.blockDim = dim3(128);
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, args...) == cudaSuccess || complain("the launch failed");
}

inline long long thread_index() { return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; }

}  // namespace levin::test::fake
