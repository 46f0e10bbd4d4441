#pragma once
// The matrix and copy instructions of PTX, as kernels reach them through kernels/cuda/base/ptx.h. All lanes of a warp
// must execute a matrix instruction together. Misuse ends the kernel with a report (see fail()).

#include <levin/emulator/execution.h>

#include <cstdint>

namespace levin::emulator {

/// cp.async of `bytes` (4, 8 or 16), of which `source_bytes` come from global memory and the rest are zeros. Reported
/// errors: addresses not aligned to `bytes`, a destination outside of shared memory, a source inside of it, and
/// source_bytes below 0 or above `bytes`.
void copy_async(void* shared, const void* global, int bytes, int source_bytes, Site site);

/// ldmatrix of `count` (1, 2 or 4) matrices of 8 x 8 16-bit elements: lane 8 i + j gives the address of row j of matrix
/// i; register i of lane 4 g + t becomes matrix i's elements (g, 2 t) and (g, 2 t + 1), or, transposed, (2 t, g) and
/// (2 t + 1, g). Reported errors: row addresses not aligned to 16 bytes or outside of shared memory.
void load_matrices(int count, bool transposed, std::uint32_t* registers, const void* row, Site site);
/// stmatrix: the inverse of load_matrices.
void store_matrices(int count, bool transposed, void* row, const std::uint32_t* registers, Site site);
/// movmatrix.trans of an 8 x 8 matrix in the layout of load_matrices.
std::uint32_t transpose_matrix(std::uint32_t value, Site site);

/// mma.m16n8k<k>: d (16 x 8) = a (16 x k) b (k x 8) + c (16 x 8), k being 8 or 16 for the 16-bit inputs, 4 or 8 for
/// tf32. In lane 4 g + t, with E elements in a register (2, or 1 for tf32): a's register i holds row g + 8 (i mod 2),
/// columns from E t + 4 E (i / 2); b's register i holds rows from E t + 4 E i of column g; c and d hold (g, 2 t),
/// (g, 2 t + 1), (g + 8, 2 t), (g + 8, 2 t + 1). Products are exact, sums are rounded to float, k ascending; the GPU
/// rounds otherwise, within the same error. tf32 ignores the 13 lowest bits of its inputs.
void multiply_matrices(MmaInput input, int k, float* d, const std::uint32_t* a, const std::uint32_t* b, const float* c,
                       Site site);
/// The same for f16 inputs with c and d in f16, two per register, rounded once at the end.
void multiply_matrices_f16(int k, std::uint32_t* d, const std::uint32_t* a, const std::uint32_t* b,
                           const std::uint32_t* c, Site site);
/// cvt.rna.tf32: rounds to the nearest value with 10 bits of mantissa, ties away from zero.
std::uint32_t round_to_tf32(float x);

/// wgmma.m64n<8 tiles>k16 with float sums: d (tiles, 4) is this thread's part of a (64 x 16) b (16 x 8 tiles), added to
/// d if `add`. It is computed when the thread waits for it (group_products()); until then new sums are NaN. Reported
/// errors: lanes that have ended or come from another place, and operands outside of shared memory or misaligned.
void multiply_group(MmaInput input, int tiles, float* d, const GroupOperand& a, const GroupOperand& b, bool add,
                    Site site);
/// The same with A in registers, in the layout of multiply_matrices for k = 16. In addition reports registers that are
/// changed before the wait.
void multiply_group(MmaInput input, int tiles, float* d, const std::uint32_t* a, const GroupOperand& b, bool add,
                    Site site);

/// wgmma.wait_group: computes the products of all groups of the warp except the newest `pending`. No lane returns
/// before all lanes have computed theirs. Reports lanes that have ended or come from another place.
void wait_for_products(int pending, Site site);

/// bar.sync of `threads` threads, whole warps, at barrier `id` (0 to 15).
void named_barrier(int id, int threads, Site site);

}  // namespace levin::emulator
