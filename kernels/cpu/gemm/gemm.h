#pragma once
// General matrix product on raw pointers: C = alpha A B + beta C + bias, batched, any strides of A and B.

#include <levin/core/dtype.h>
#include <levin/kernels/kernel.h>

#include <cstdint>
#include <type_traits>

namespace levin::kernels::cpu {

/// Type of alpha and beta: float for the 16-bit floats, which accumulate in float, else T itself.
template <class T>
using GemmScalar = std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>, float, T>;

/// For each i in [0, batch): C_i (m, n) = alpha A_i (m, k) B_i (k, n) + beta C_i + bias_n. Strides count elements;
/// those of A, B and the batch may have any value, including 0; C's rows are contiguous and C overlaps neither A nor B.
/// If beta = 0, C is not read. If k = 0, the result is beta C + bias.
template <class T>
struct GemmArgs {
  int64_t m = 0, n = 0, k = 0;
  const T* a = nullptr;  // (m, k)
  int64_t a_rs = 0, a_cs = 0;
  const T* b = nullptr;  // (k, n)
  int64_t b_rs = 0, b_cs = 0;
  T* c = nullptr;  // (m, n), unit column stride
  int64_t c_rs = 0;
  GemmScalar<T> alpha = GemmScalar<T>(1), beta = GemmScalar<T>(0);
  const T* bias_n = nullptr;  // (n), added to each row; may be null
  int64_t batch = 1, a_bs = 0, b_bs = 0, c_bs = 0;
  void* prepared_b = nullptr;  // see MatmulArgs; for float and a batch of one
  bool prepare_b = false;
};

/// Deterministic: the order of each sum depends only on k, never on the number of threads. Bits may differ between
/// instruction sets. The 16-bit types accumulate in float and round once.
void gemm(const GemmArgs<float>& args);
void gemm(const GemmArgs<double>& args);
void gemm(const GemmArgs<Half>& args);
void gemm(const GemmArgs<BFloat16>& args);
void gemm(const GemmArgs<std::int64_t>& args);
void gemm(const GemmArgs<std::int32_t>& args);
void gemm(const GemmArgs<std::int16_t>& args);
void gemm(const GemmArgs<std::int8_t>& args);
void gemm(const GemmArgs<std::uint8_t>& args);

/// See kernels::prepared_matrix_bytes.
int64_t prepared_bytes(int64_t rows, int64_t n, int64_t k);

}  // namespace levin::kernels::cpu
