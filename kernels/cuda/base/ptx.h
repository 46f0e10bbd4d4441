#pragma once
// PTX instructions for which CUDA C++ has no function, in namespace ptx, with two implementations of the same
// signatures: inline PTX for nvcc (ptx_device.h) and the emulator's instructions for the host compiler
// (ptx_emulated.h). All pointers are generic, also those to shared memory.
//
// Copies from global to shared memory (cp.async), for which the copying thread waits; others then need a barrier:
//   cp_async16(shared, global, source_bytes = 16)   past L1; both addresses aligned to the size; zeros after
//   cp_async8, cp_async4                            through L1                            source_bytes bytes
//   cp_async_commit()        groups the copies started since the last commit
//   cp_async_wait<N>()       waits for all committed groups except the newest N
//   cp_async_wait_all()      waits for all copies, committed or not
//
// Matrices of 8 x 8 16-bit elements. All 32 lanes must take part; lane = 4 g + t:
//   ldmatrix_x1, _x2, _x4(r, row), ..._trans    lane 8 i + j gives row j of matrix i: 16 bytes, aligned to 16, shared;
//                            r[i] = elements (g, 2 t), (g, 2 t + 1) of matrix i, or (2 t, g), (2 t + 1, g) with _trans
//   stmatrix_x1, _x2, _x4(row, r), ..._trans    the reverse of ldmatrix
//   movmatrix_trans(r)       the transpose of a matrix in registers
//
// Products d (16 x 8) = a (16 x K) b (K x 8) + c (16 x 8), d and c in float; d may be c. E elements share a register,
// the lower column or row in the lower half (E = 2 for T = __half, __nv_bfloat16; E = 1 for T = tf32):
//   mma_m16n8k16<T>, mma_m16n8k8<T>, mma_m16n8k4<tf32>(d, a, b, c)
//        a[i]: row g + 8 (i % 2), columns from E t + 4 E (i / 2)       b[i]: rows from E t + 4 E i, column g
//        c and d: (g, 2 t), (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1)
//   With uint32_t d[2], c[2] and T = __half: sums in half, d[0] = row g, d[1] = row g + 8.
//   round_to_tf32(x)         a tf32 operand from a float, ties away from zero; mma ignores the 13 lowest bits
//
// Products of a warpgroup (compute capability 9.0), four consecutive warps from a multiple of four on, with 16-bit
// operands in shared memory. They run asynchronously: until a wait, the sums and the operands must not be touched.
//   shared_operand(tile, block_stride)   an operand of 16 steps of k: rows of 128 bytes, eight rows of which begin at
//                            a multiple of 1024 bytes; chunk c of 16 bytes of row r lies at chunk c ^ r % 8. Along k:
//                            a row is a line. Along the lines (`lines_a`, `lines_b`): a row is a step of k of 64 lines;
//                            the next 64 lines begin block_stride bytes later. plus(bytes) moves it.
//   wgmma_m64k16<T, lines_a, lines_b>(d, a, b, add)   d (64 x 8 N) = a (64 x 16) b (16 x 8 N), + d if `add`, d[N][4]:
//                            d[j] of warp w: rows 16 w + g and + 8, columns 8 j + 2 t and + 1, in the order of mma
//   wgmma_m64k16<T, lines_b>(d, a, b, add)   the same with A in registers: uint32_t a[4] of warp w holds rows from 16 w
//                            on in the layout of mma_m16n8k16; they must not be changed until a wait
//   wgmma_fence()            before the first product after other code has written the sums
//   wgmma_commit()           groups the products started since the last commit
//   wgmma_wait<N>()          waits for all groups of this warpgroup except the newest N
//   wgmma_wait_behind<N>(x)  the same after x, which is not negative, has been computed: ptxas moves a plain wait above
//                            arithmetic that could run beside the products
//   wgmma_hold(d)            keeps the compiler from moving code that uses the sums, or a, across this place
//
// Copies of boxes of tensors by the copy engine (TMA, compute capability 9.0), and the barriers that count their bytes,
// 64 bits in shared memory:
//   barrier_init(b, arrivals)    by one thread; then barrier_init_fence() and __syncthreads()
//   barrier_arrive(b)            one arrival; barrier_arrive(b, bytes): that also expects bytes of copies
//   barrier_wait(b, parity)      waits for the end of the phase of that parity; phases are numbered from 0, and the one
//                                before the first has ended
//   copy_box<Rank>(shared, map, at, b)   copies the box that begins at element at[i] of axis i, zeros outside of the
//                                tensor; rows of 128 bytes with permuted chunks, as shared_operand reads them
//
// Others:
//   named_barrier(id, threads)   barrier 1 to 15 (0 is that of __syncthreads) of `threads` threads, whole warps
//   fence_proxy_async()          makes ordinary writes to shared memory visible to TMA and wgmma
//   set_registers<Count, more>() sets the registers of each thread of a warpgroup, more or fewer than at the start
//   prefetch_l2(global)          prefetches the line to L2
//   exp2_flushed(x)              exp2f in one instruction: denormal results are 0; as exact as exp2f otherwise
//   opaque(x)                returns the float x; the compiler cannot reuse what it has computed from x before
//   lane_id(), warp_id()         index of this thread in its warp, of its warp in the block

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace levin::kernels::cuda::ptx {

/// Tag of the 19-bit format in which tensor cores read floats: the exponent of float and 10 bits of mantissa.
struct tf32 {};

template <class T>
inline constexpr bool is_16_bit = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

}  // namespace levin::kernels::cuda::ptx

#include "kernels/cuda/base/tensor_map.h"

#if defined(__CUDACC__)
#include "kernels/cuda/base/ptx_device.h"
#else
#include "kernels/cuda/base/ptx_emulated.h"
#endif

namespace levin::kernels::cuda::ptx {

/// Returns the index of this thread's warp in its block.
__device__ inline int warp_id() {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return static_cast<int>(thread / 32);
}

}  // namespace levin::kernels::cuda::ptx
