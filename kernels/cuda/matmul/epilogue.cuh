#pragma once
// Epilogue, applied to a finished sum in registers before it is stored: C = activation(alpha sum + beta C + bias) +
// residual. A separate kernel for each of these would read and write all of C again.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/matmul/problem.cuh"
#include "kernels/cuda/matmul/tiles.cuh"

namespace levin::kernels::cuda {

struct Identity {
  template <class T>
  __device__ T operator()(T x) const {
    return x;
  }
};
struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0.0f : x; }  // keeps NaN
};
/// x Phi(x) (Hendrycks and Gimpel, 2016), computed with the error function.
struct Gelu {
  __device__ float operator()(float x) const { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
};

template <class T, class Activation = Identity>
struct Epilogue {
  T* c = nullptr;
  const T *bias = nullptr, *residual = nullptr;
  Sum<T>* parts = nullptr;  ///< (splits, batch, m, n): the plain sums of the parts if K is split
  Sum<T> alpha{}, beta{};
  std::int64_t m = 0, n = 0, batch = 1;
  int width = 1;  ///< number of neighbours of C that one store may write

  explicit Epilogue(const Problem<T>& p)
      : c(p.c), bias(p.bias), residual(p.residual), alpha(p.alpha), beta(p.beta), m(p.m), n(p.n), batch(p.batch) {
    const auto aligned_to = [address = reinterpret_cast<std::uintptr_t>(c)](int elements) {
      return address % (static_cast<std::size_t>(elements) * sizeof(T)) == 0;
    };
    while (width < 4 && n % (2 * width) == 0 && aligned_to(2 * width)) width *= 2;
  }

  /// Computes the element of C at `index` from the sum of its products. With beta = 0 C is not read.
  __device__ T finish(Sum<T> sum, std::int64_t index, std::int64_t column) const {
    Sum<T> x = alpha * sum;
    if (beta != Sum<T>(0)) x += beta * convert<Sum<T>>(c[index]);
    if (bias) x += convert<Sum<T>>(bias[column]);
    x = Activation{}(x);
    if (residual) x += convert<Sum<T>>(residual[index]);
    return convert<T>(x);
  }

  /// Stores N neighbours of a row from `column` on, a multiple of N; elements outside of C are dropped.
  template <int N>
  __device__ void write(const TilePlace& place, std::int64_t row, std::int64_t column, const Sum<T> (&sums)[N]) const {
    if (row >= m || column >= n) return;
    const std::int64_t index = (place.batch * m + row) * n + column;
    const int inside = n - column < N ? static_cast<int>(n - column) : N;
    if (parts) {
      Sum<T>* to = parts + place.split * batch * m * n + index;
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < N; ++i) {
        if (i < inside) to[i] = sums[i];
      }
      return;
    }
    Pack<T, N> values;  // one call of finish() only: activations are much code, unrolled for each sum of a thread
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
      if (i < inside) values[i] = finish(sums[i], index + i, column + i);
    }
    if (N <= width) {
      pack_at<N>(c + index) = values;
      return;
    }
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < N; ++i) {
      if (i < inside) c[index + i] = values[i];
    }
  }
};

/// Adds up the parts of K in order, and applies the epilogue.
template <class T, class Activation>
__global__ void add_parts(Epilogue<T, Activation> out, int splits) {
  const std::int64_t count = out.batch * out.m * out.n;
  for (std::int64_t i = global_thread(); i < count; i += grid_threads()) {
    Sum<T> sum{};
    for (int s = 0; s < splits; ++s) sum += out.parts[s * count + i];
    out.c[i] = out.finish(sum, i, i % out.n);
  }
}

template <class T, class Activation>
void launch_add_parts(const Epilogue<T, Activation>& out, int splits, const Stream& stream) {
  launch(add_parts<T, Activation>, {.grid = blocks_for(out.batch * out.m * out.n), .block = 256, .stream = stream}, out,
         splits);
}

}  // namespace levin::kernels::cuda
