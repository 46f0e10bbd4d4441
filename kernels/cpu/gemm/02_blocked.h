#pragma once
// Rung 2: plain loops, blocked for the caches.
// Idea: order the loops i, k, j so that the innermost runs along rows of B and C, and split k and j so that a block of
// B stays in the cache while all rows of A are multiplied by it.
// Changes: no library; any element type, so this is also the product of the integer types.
// Bound: each multiply-add also loads and stores C: the load and store ports are the limit, not the multipliers.
// Gained at 1024 over rung 1: 0.6 times on one core, 1.2 on two (it is threaded); it is included because it is short.

#include "kernels/cpu/gemm/gemm.h"

#include <levin/core/parallel.h>

#include <algorithm>

namespace levin::kernels::cpu {

namespace detail {
// Signed overflow is undefined, so integers are multiplied as unsigned: the result wraps as in PyTorch.
template <class T>
T multiply_add(T x, T y, T sum) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::uint64_t;
    return static_cast<T>(static_cast<U>(x) * static_cast<U>(y) + static_cast<U>(sum));
  } else {
    return x * y + sum;
  }
}

template <class T>
void blocked_rows(const GemmArgs<T>& g, int64_t begin, int64_t end) {
  constexpr int64_t k_block = 64, n_block = 512;
  for (int64_t i = begin; i < end; ++i) {
    T* c = g.c + i * g.c_rs;
    for (int64_t j = 0; j < g.n; ++j) {
      const T bias = g.bias_n ? g.bias_n[j] : T(0);
      c[j] = g.beta == T(0) ? bias : multiply_add(g.beta, c[j], bias);
    }
  }
  for (int64_t k0 = 0; k0 < g.k; k0 += k_block) {
    for (int64_t j0 = 0; j0 < g.n; j0 += n_block) {
      const int64_t k1 = std::min(k0 + k_block, g.k), j1 = std::min(j0 + n_block, g.n);
      for (int64_t i = begin; i < end; ++i) {
        T* c = g.c + i * g.c_rs;
        for (int64_t p = k0; p < k1; ++p) {
          const T x = multiply_add(g.alpha, g.a[i * g.a_rs + p * g.a_cs], T(0));
          const T* b = g.b + p * g.b_rs;
          if (g.b_cs == 1) {
            for (int64_t j = j0; j < j1; ++j) c[j] = multiply_add(x, b[j], c[j]);
          } else {
            for (int64_t j = j0; j < j1; ++j) c[j] = multiply_add(x, b[j * g.b_cs], c[j]);
          }
        }
      }
    }
  }
}
}  // namespace detail

/// Rows are distributed to the threads in groups of 32.
template <class T>
void gemm_blocked(const GemmArgs<T>& g) {
  for (int64_t i = 0; i < g.batch; ++i) {
    GemmArgs<T> one = g;
    one.a += i * g.a_bs;
    one.b += i * g.b_bs;
    one.c += i * g.c_bs;
    parallel_for(0, g.m, 32, [&one](int64_t begin, int64_t end) { detail::blocked_rows(one, begin, end); });
  }
}

}  // namespace levin::kernels::cpu
