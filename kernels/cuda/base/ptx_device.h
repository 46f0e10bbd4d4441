#pragma once
// Implements ptx.h for nvcc by inline PTX. Include ptx.h instead.

namespace levin::kernels::cuda::ptx {

namespace detail {
__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}
}  // namespace detail

__device__ inline void cp_async16(void* shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(detail::shared_address(shared)),
               "l"(__cvta_generic_to_global(global))
               : "memory");
}
__device__ inline void cp_async16(void* shared, const void* global, int source_bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(detail::shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}
__device__ inline void cp_async8(void* shared, const void* global, int source_bytes = 8) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(detail::shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}
__device__ inline void cp_async4(void* shared, const void* global, int source_bytes = 4) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(detail::shared_address(shared)),
               "l"(__cvta_generic_to_global(global)), "r"(source_bytes)
               : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int pending>
__device__ inline void cp_async_wait() {
  static_assert(pending >= 0);
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
__device__ inline void cp_async_wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }

#define LEVIN_PTX_MATRICES_X1(suffix, modifier)                                       \
  __device__ inline void ldmatrix_x1##suffix(std::uint32_t(&r)[1], const void* row) { \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" modifier ".shared.b16 {%0}, [%1];"   \
                 : "=r"(r[0])                                                         \
                 : "r"(detail::shared_address(row))                                   \
                 : "memory");                                                         \
  }
#define LEVIN_PTX_MATRICES_X2(suffix, modifier)                                         \
  __device__ inline void ldmatrix_x2##suffix(std::uint32_t(&r)[2], const void* row) {   \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" modifier ".shared.b16 {%0, %1}, [%2];" \
                 : "=r"(r[0]), "=r"(r[1])                                               \
                 : "r"(detail::shared_address(row))                                     \
                 : "memory");                                                           \
  }
#define LEVIN_PTX_MATRICES_X4(suffix, modifier)                                                 \
  __device__ inline void ldmatrix_x4##suffix(std::uint32_t(&r)[4], const void* row) {           \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" modifier ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                               \
                 : "r"(detail::shared_address(row))                                             \
                 : "memory");                                                                   \
  }
LEVIN_PTX_MATRICES_X1(, "")
LEVIN_PTX_MATRICES_X1(_trans, ".trans")
LEVIN_PTX_MATRICES_X2(, "")
LEVIN_PTX_MATRICES_X2(_trans, ".trans")
LEVIN_PTX_MATRICES_X4(, "")
LEVIN_PTX_MATRICES_X4(_trans, ".trans")
#undef LEVIN_PTX_MATRICES_X1
#undef LEVIN_PTX_MATRICES_X2
#undef LEVIN_PTX_MATRICES_X4

namespace detail {
/// stmatrix. Below sm_90, which lacks it, every lane gets the row addresses from the other lanes by shuffles and stores
/// its own elements.
template <bool transposed, int count>
__device__ inline void store_matrices(void* row, const std::uint32_t (&r)[count]) {
#if __CUDA_ARCH__ >= 900
  const std::uint32_t address = shared_address(row);
  if constexpr (count == 1 && !transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(address), "r"(r[0]) : "memory");
  } else if constexpr (count == 1) {
    asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(address), "r"(r[0]) : "memory");
  } else if constexpr (count == 2 && !transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r[0]), "r"(r[1])
                 : "memory");
  } else if constexpr (count == 2) {
    asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(address), "r"(r[0]), "r"(r[1])
                 : "memory");
  } else if constexpr (!transposed) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  } else {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(r[0]),
                 "r"(r[1]), "r"(r[2]), "r"(r[3])
                 : "memory");
  }
#else
  const int thread = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  const int g = thread % 32 / 4, t = thread % 4;
  const auto own = reinterpret_cast<unsigned long long>(row);
  const auto row_of = [&](int i, int j) { return __shfl_sync(0xffffffffu, own, 8 * i + j); };
#pragma unroll
  for (int i = 0; i < count; ++i) {
    if constexpr (transposed) {
      reinterpret_cast<std::uint16_t*>(row_of(i, 2 * t))[g] = static_cast<std::uint16_t>(r[i]);
      reinterpret_cast<std::uint16_t*>(row_of(i, 2 * t + 1))[g] = static_cast<std::uint16_t>(r[i] >> 16);
    } else {
      reinterpret_cast<std::uint32_t*>(row_of(i, g))[t] = r[i];
    }
  }
#endif
}
}  // namespace detail

__device__ inline void stmatrix_x1(void* row, const std::uint32_t (&r)[1]) { detail::store_matrices<false>(row, r); }
__device__ inline void stmatrix_x2(void* row, const std::uint32_t (&r)[2]) { detail::store_matrices<false>(row, r); }
__device__ inline void stmatrix_x4(void* row, const std::uint32_t (&r)[4]) { detail::store_matrices<false>(row, r); }
__device__ inline void stmatrix_x1_trans(void* row, const std::uint32_t (&r)[1]) {
  detail::store_matrices<true>(row, r);
}
__device__ inline void stmatrix_x2_trans(void* row, const std::uint32_t (&r)[2]) {
  detail::store_matrices<true>(row, r);
}
__device__ inline void stmatrix_x4_trans(void* row, const std::uint32_t (&r)[4]) {
  detail::store_matrices<true>(row, r);
}

__device__ inline std::uint32_t movmatrix_trans(std::uint32_t r) {
  std::uint32_t result;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(r));
  return result;
}

// One product: 4 float sums, with 4 and 2, or 2 and 1, registers of a and b.
#define LEVIN_PTX_MMA_4_2(types)                                                                                    \
  asm volatile("mma.sync.aligned." types " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"     \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                                     \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), \
                 "f"(c[3]))
#define LEVIN_PTX_MMA_2_1(types)                                                                 \
  asm volatile("mma.sync.aligned." types " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%7, %8, %9, %10};" \
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                  \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]))

template <class T>
__device__ inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                    const float (&c)[4]) {
  static_assert(is_16_bit<T>);
  if constexpr (std::is_same_v<T, __half>) {
    LEVIN_PTX_MMA_4_2("m16n8k16.row.col.f32.f16.f16.f32");
  } else {
    LEVIN_PTX_MMA_4_2("m16n8k16.row.col.f32.bf16.bf16.f32");
  }
}
template <class T>
__device__ inline void mma_m16n8k8(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                                   const float (&c)[4]) {
  static_assert(is_16_bit<T>);
  if constexpr (std::is_same_v<T, __half>) {
    LEVIN_PTX_MMA_2_1("m16n8k8.row.col.f32.f16.f16.f32");
  } else {
    LEVIN_PTX_MMA_2_1("m16n8k8.row.col.f32.bf16.bf16.f32");
  }
}
template <class T>
__device__ inline void mma_m16n8k8(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                   const float (&c)[4]) {
  static_assert(std::is_same_v<T, tf32>);
  LEVIN_PTX_MMA_4_2("m16n8k8.row.col.f32.tf32.tf32.f32");
}
template <class T>
__device__ inline void mma_m16n8k4(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                                   const float (&c)[4]) {
  static_assert(std::is_same_v<T, tf32>);
  LEVIN_PTX_MMA_2_1("m16n8k4.row.col.f32.tf32.tf32.f32");
}
#undef LEVIN_PTX_MMA_4_2
#undef LEVIN_PTX_MMA_2_1

template <class T>
__device__ inline void mma_m16n8k16(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                                    const std::uint32_t (&c)[2]) {
  static_assert(std::is_same_v<T, __half>);
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%8, %9};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]));
}
template <class T>
__device__ inline void mma_m16n8k8(std::uint32_t (&d)[2], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                                   const std::uint32_t (&c)[2]) {
  static_assert(std::is_same_v<T, __half>);
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%5, %6};"
               : "=r"(d[0]), "=r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]));
}

__device__ inline std::uint32_t round_to_tf32(float x) {
  std::uint32_t result;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(result) : "f"(x));
  return result;
}

__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void fence_proxy_async() {
#if __CUDA_ARCH__ >= 900  // older architectures have no such proxy
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

__device__ inline void prefetch_l2(const void* global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(global)));
}

__device__ inline float exp2_flushed(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ inline float opaque(float x) {
  asm volatile("" : "+f"(x));
  return x;
}

__device__ inline int lane_id() {
  std::uint32_t lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return static_cast<int>(lane);
}

}  // namespace levin::kernels::cuda::ptx

#include "kernels/cuda/base/bulk_device.h"
#include "kernels/cuda/base/wgmma_device.h"
