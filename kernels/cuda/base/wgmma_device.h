#pragma once
// The products of a warpgroup of ptx.h for nvcc. Include ptx.h instead.

namespace levin::kernels::cuda::ptx {

/// The descriptor of an operand in shared memory.
struct SharedOperand {
  std::uint64_t bits;
  __device__ SharedOperand plus(int bytes) const { return {bits + static_cast<std::uint64_t>(bytes >> 4)}; }
};

__device__ inline SharedOperand shared_operand(const void* tile, int block_stride) {
  constexpr std::uint64_t swizzled_128 = 1, eight_rows = 1024;
  const std::uint64_t address = __cvta_generic_to_shared(tile);
  return {(address & 0x3ffff) >> 4 | static_cast<std::uint64_t>(block_stride >> 4) << 16 | eight_rows >> 4 << 32 |
          swizzled_128 << 62};
}

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define LEVIN_PTX_IF_WGMMA(...) __VA_ARGS__
#else  // never reached: the launchers ask for compute capability 9
#define LEVIN_PTX_IF_WGMMA(...) __trap()
#endif

__device__ inline void wgmma_fence() { LEVIN_PTX_IF_WGMMA(asm volatile("wgmma.fence.sync.aligned;" ::: "memory")); }
__device__ inline void wgmma_commit() {
  LEVIN_PTX_IF_WGMMA(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"));
}
template <int pending>
__device__ inline void wgmma_wait() {
  LEVIN_PTX_IF_WGMMA(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory"));
}
template <int pending>
__device__ inline void wgmma_wait_behind(float x) {
  if (__any_sync(0xffffffffu, x < 0)) {  // never; ptxas does not move the wait above a branch
    wgmma_wait<0>();
    __trap();
    __builtin_unreachable();
  }
  wgmma_wait<pending>();
}
template <int N>
__device__ inline void wgmma_hold(float (&d)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j) asm volatile("" : "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])::"memory");
}
template <int N>
__device__ inline void wgmma_hold(std::uint32_t (&a)[N][4]) {
#pragma unroll
  for (int j = 0; j < N; ++j) asm volatile("" : "+r"(a[j][0]), "+r"(a[j][1]), "+r"(a[j][2]), "+r"(a[j][3])::"memory");
}

#define LEVIN_PTX_TILE(j) "+f"(d[j][0]), "+f"(d[j][1]), "+f"(d[j][2]), "+f"(d[j][3])
#define LEVIN_PTX_TILES_4(j) LEVIN_PTX_TILE(j), LEVIN_PTX_TILE(j + 1), LEVIN_PTX_TILE(j + 2), LEVIN_PTX_TILE(j + 3)
#define LEVIN_PTX_TILES_16(j) \
  LEVIN_PTX_TILES_4(j), LEVIN_PTX_TILES_4(j + 4), LEVIN_PTX_TILES_4(j + 8), LEVIN_PTX_TILES_4(j + 12)
#define LEVIN_PTX_SUMS_32 \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LEVIN_PTX_SUMS_64 \
  LEVIN_PTX_SUMS_32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define LEVIN_PTX_SUMS_128 \
  LEVIN_PTX_SUMS_64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define LEVIN_PTX_WGMMA(shape, types, sums, a_number, b_number, add_number, ta_number, tb_number, ...)              \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_number ", 0;\nwgmma.mma_async.sync.aligned." shape types \
               " {" sums "}, " a_number ", " b_number ", add, 1, 1, " ta_number ", " tb_number ";\n}"               \
               : __VA_ARGS__                                                                                       \
               : "l"(a.bits), "l"(b.bits), "r"(static_cast<int>(add)), "n"(lines_a), "n"(lines_b))
#define LEVIN_PTX_WGMMA_64(types)                                                                                \
  LEVIN_PTX_WGMMA("m64n64k16", types, LEVIN_PTX_SUMS_32, "%32", "%33", "%34", "%35", "%36", LEVIN_PTX_TILES_4(0), \
                  LEVIN_PTX_TILES_4(4))
#define LEVIN_PTX_WGMMA_128(types)                                                                                \
  LEVIN_PTX_WGMMA("m64n128k16", types, LEVIN_PTX_SUMS_64, "%64", "%65", "%66", "%67", "%68", LEVIN_PTX_TILES_16(0))
#define LEVIN_PTX_WGMMA_256(types)                                                                 \
  LEVIN_PTX_WGMMA("m64n256k16", types, LEVIN_PTX_SUMS_128, "%128", "%129", "%130", "%131", "%132", \
                  LEVIN_PTX_TILES_16(0), LEVIN_PTX_TILES_16(16))

template <class T, bool lines_a, bool lines_b, int N>
__device__ inline void wgmma_m64k16(float (&d)[N][4], SharedOperand a, SharedOperand b, bool add) {
  static_assert(is_16_bit<T> && (N == 8 || N == 16 || N == 32));
  if constexpr (N == 8 && std::is_same_v<T, __half>) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_64(".f32.f16.f16"));
  } else if constexpr (N == 8) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_64(".f32.bf16.bf16"));
  } else if constexpr (N == 16 && std::is_same_v<T, __half>) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_128(".f32.f16.f16"));
  } else if constexpr (N == 16) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_128(".f32.bf16.bf16"));
  } else if constexpr (std::is_same_v<T, __half>) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_256(".f32.f16.f16"));
  } else {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_256(".f32.bf16.bf16"));
  }
}

#define LEVIN_PTX_WGMMA_REGISTERS(shape, types, sums, a_numbers, b_number, add_number, tb_number, ...)               \
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, " add_number ", 0;\nwgmma.mma_async.sync.aligned." shape types \
               " {" sums "}, {" a_numbers "}, " b_number ", add, 1, 1, " tb_number ";\n}"                            \
               : __VA_ARGS__                                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(static_cast<int>(add)), "n"(lines_b))
#define LEVIN_PTX_WGMMA_REGISTERS_64(types)                                                                        \
  LEVIN_PTX_WGMMA_REGISTERS("m64n64k16", types, LEVIN_PTX_SUMS_32, "%32, %33, %34, %35", "%36", "%37", "%38",       \
                            LEVIN_PTX_TILES_4(0), LEVIN_PTX_TILES_4(4))
#define LEVIN_PTX_WGMMA_REGISTERS_128(types)                                                                       \
  LEVIN_PTX_WGMMA_REGISTERS("m64n128k16", types, LEVIN_PTX_SUMS_64, "%64, %65, %66, %67", "%68", "%69", "%70",      \
                            LEVIN_PTX_TILES_16(0))

template <class T, bool lines_b, int N>
__device__ inline void wgmma_m64k16(float (&d)[N][4], const std::uint32_t (&a)[4], SharedOperand b, bool add) {
  static_assert(is_16_bit<T> && (N == 8 || N == 16));
  if constexpr (N == 8 && std::is_same_v<T, __half>) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_REGISTERS_64(".f32.f16.f16"));
  } else if constexpr (N == 8) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_REGISTERS_64(".f32.bf16.bf16"));
  } else if constexpr (std::is_same_v<T, __half>) {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_REGISTERS_128(".f32.f16.f16"));
  } else {
    LEVIN_PTX_IF_WGMMA(LEVIN_PTX_WGMMA_REGISTERS_128(".f32.bf16.bf16"));
  }
}
#undef LEVIN_PTX_WGMMA_REGISTERS_128
#undef LEVIN_PTX_WGMMA_REGISTERS_64
#undef LEVIN_PTX_WGMMA_REGISTERS
#undef LEVIN_PTX_WGMMA_256
#undef LEVIN_PTX_WGMMA_128
#undef LEVIN_PTX_WGMMA_64
#undef LEVIN_PTX_WGMMA
#undef LEVIN_PTX_SUMS_128
#undef LEVIN_PTX_SUMS_64
#undef LEVIN_PTX_SUMS_32
#undef LEVIN_PTX_TILES_16
#undef LEVIN_PTX_TILES_4
#undef LEVIN_PTX_TILE
#undef LEVIN_PTX_IF_WGMMA

}  // namespace levin::kernels::cuda::ptx
