#pragma once
// Implements ptx.h for the host compiler by the emulator's instructions. Include ptx.h instead. The last argument of
// each function, which kernels omit, is the source location that a report shows.

#include <levin/emulator/bulk_copies.h>
#include <levin/emulator/instructions.h>

#include <cmath>

namespace levin::kernels::cuda::ptx {

using Site = ::levin::emulator::Site;

inline void cp_async16(void* shared, const void* global, int source_bytes = 16, Site site = Site::current()) {
  ::levin::emulator::copy_async(shared, global, 16, source_bytes, site);
}
inline void cp_async8(void* shared, const void* global, int source_bytes = 8, Site site = Site::current()) {
  ::levin::emulator::copy_async(shared, global, 8, source_bytes, site);
}
inline void cp_async4(void* shared, const void* global, int source_bytes = 4, Site site = Site::current()) {
  ::levin::emulator::copy_async(shared, global, 4, source_bytes, site);
}
inline void cp_async_commit() { ::levin::emulator::async_copies().commit(); }
template <int pending>
inline void cp_async_wait() {
  static_assert(pending >= 0);
  ::levin::emulator::async_copies().wait(pending);
}
inline void cp_async_wait_all() { ::levin::emulator::async_copies().wait_all(); }

#define LEVIN_PTX_MATRICES(count)                                                                                 \
  inline void ldmatrix_x##count(std::uint32_t(&r)[count], const void* row, Site site = Site::current()) {         \
    ::levin::emulator::load_matrices(count, false, r, row, site);                                                 \
  }                                                                                                               \
  inline void ldmatrix_x##count##_trans(std::uint32_t(&r)[count], const void* row, Site site = Site::current()) { \
    ::levin::emulator::load_matrices(count, true, r, row, site);                                                  \
  }                                                                                                               \
  inline void stmatrix_x##count(void* row, const std::uint32_t(&r)[count], Site site = Site::current()) {         \
    ::levin::emulator::store_matrices(count, false, row, r, site);                                                \
  }                                                                                                               \
  inline void stmatrix_x##count##_trans(void* row, const std::uint32_t(&r)[count], Site site = Site::current()) { \
    ::levin::emulator::store_matrices(count, true, row, r, site);                                                 \
  }
LEVIN_PTX_MATRICES(1)
LEVIN_PTX_MATRICES(2)
LEVIN_PTX_MATRICES(4)
#undef LEVIN_PTX_MATRICES

inline std::uint32_t movmatrix_trans(std::uint32_t r, Site site = Site::current()) {
  return ::levin::emulator::transpose_matrix(r, site);
}

namespace detail {
template <class T>
inline constexpr auto mma_input = std::is_same_v<T, __half>          ? ::levin::emulator::MmaInput::f16
                                  : std::is_same_v<T, __nv_bfloat16> ? ::levin::emulator::MmaInput::bf16
                                                                     : ::levin::emulator::MmaInput::tf32;
}  // namespace detail

template <class T>
inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], const float (&c)[4],
                         Site site = Site::current()) {
  static_assert(is_16_bit<T>);
  ::levin::emulator::multiply_matrices(detail::mma_input<T>, 16, d, a, b, c, site);
}
template <class T>
inline void mma_m16n8k8(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1], const float (&c)[4],
                        Site site = Site::current()) {
  static_assert(is_16_bit<T>);
  ::levin::emulator::multiply_matrices(detail::mma_input<T>, 8, d, a, b, c, site);
}
template <class T>
inline void mma_m16n8k8(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2], const float (&c)[4],
                        Site site = Site::current()) {
  static_assert(std::is_same_v<T, tf32>);
  ::levin::emulator::multiply_matrices(detail::mma_input<T>, 8, d, a, b, c, site);
}
template <class T>
inline void mma_m16n8k4(float (&d)[4], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1], const float (&c)[4],
                        Site site = Site::current()) {
  static_assert(std::is_same_v<T, tf32>);
  ::levin::emulator::multiply_matrices(detail::mma_input<T>, 4, d, a, b, c, site);
}
template <class T>
inline void mma_m16n8k16(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                         const std::uint32_t (&c)[2], Site site = Site::current()) {
  static_assert(std::is_same_v<T, __half>);
  ::levin::emulator::multiply_matrices_f16(16, d, a, b, c, site);
}
template <class T>
inline void mma_m16n8k8(std::uint32_t (&d)[2], const std::uint32_t (&a)[2], const std::uint32_t (&b)[1],
                        const std::uint32_t (&c)[2], Site site = Site::current()) {
  static_assert(std::is_same_v<T, __half>);
  ::levin::emulator::multiply_matrices_f16(8, d, a, b, c, site);
}

inline std::uint32_t round_to_tf32(float x) { return ::levin::emulator::round_to_tf32(x); }

using SharedOperand = ::levin::emulator::GroupOperand;
inline SharedOperand shared_operand(const void* tile, int block_stride) {
  return {static_cast<const unsigned char*>(tile), block_stride};
}
inline void wgmma_fence() {}
inline void wgmma_commit() { ::levin::emulator::group_products().commit(); }
template <int pending>
inline void wgmma_wait(Site site = Site::current()) {
  static_assert(pending >= 0);
  ::levin::emulator::wait_for_products(pending, site);
}
template <int pending>
inline void wgmma_wait_behind(float, Site site = Site::current()) {
  wgmma_wait<pending>(site);
}
template <class T, int N>
inline void wgmma_hold(T (&)[N][4]) {}
template <class T, bool lines_a, bool lines_b, int N>
inline void wgmma_m64k16(float (&d)[N][4], SharedOperand a, SharedOperand b, bool add, Site site = Site::current()) {
  static_assert(is_16_bit<T> && (N == 8 || N == 16 || N == 32));
  a.along_lines = lines_a, b.along_lines = lines_b;
  ::levin::emulator::multiply_group(detail::mma_input<T>, N, &d[0][0], a, b, add, site);
}
template <class T, bool lines_b, int N>
inline void wgmma_m64k16(float (&d)[N][4], const std::uint32_t (&a)[4], SharedOperand b, bool add,
                         Site site = Site::current()) {
  static_assert(is_16_bit<T> && (N == 8 || N == 16));
  b.along_lines = lines_b;
  ::levin::emulator::multiply_group(detail::mma_input<T>, N, &d[0][0], a, b, add, site);
}

inline void barrier_init(std::uint64_t* b, int arrivals, Site site = Site::current()) {
  ::levin::emulator::barrier_init(b, arrivals, site);
}
inline void barrier_init_fence() {}
inline void barrier_arrive(std::uint64_t* b, Site site = Site::current()) {
  ::levin::emulator::barrier_arrive(b, 0, site);
}
inline void barrier_arrive(std::uint64_t* b, int bytes, Site site = Site::current()) {
  ::levin::emulator::barrier_arrive(b, bytes, site);
}
inline void barrier_wait(std::uint64_t* b, int parity, Site site = Site::current()) {
  ::levin::emulator::barrier_wait(b, parity, site);
}
template <int, bool>
inline void set_registers() {}
template <int Rank>
inline void copy_box(void* shared, const TensorMap& map, const int (&at)[5], std::uint64_t* b,
                     Site site = Site::current()) {
  ::levin::emulator::copy_box(shared, map, at, b, site);
}

inline void named_barrier(int id, int threads, Site site = Site::current()) {
  ::levin::emulator::named_barrier(id, threads, site);
}

inline void fence_proxy_async() {}
inline void prefetch_l2(const void*) {}
inline float opaque(float x) { return x; }
inline float exp2_flushed(float x) { return x < -126.0f ? 0.0f : std::exp2(x); }

inline int lane_id() { return ::levin::emulator::lane(); }

}  // namespace levin::kernels::cuda::ptx
