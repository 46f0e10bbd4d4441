// Gradients of softmax, dx = y (g - sum y g), and of its logarithm, dx = g - exp(y) sum g.
#include "kernels/cuda/softmax/05_vectors.cuh"
#include "kernels/cuda/softmax/columns.cuh"

namespace levin::kernels::cuda {

/// All tensors are (outer, n, inner). dx may be g.
template <class T>
struct SoftmaxGradient {
  const T *g, *y;
  T* dx;
  std::int64_t outer, n, inner;
};

/// Computes an element's term of the sum, and its gradient given the sum.
template <bool log, class C>
__device__ inline C gradient_term(C g, C y) {
  return log ? g : g * y;
}
template <bool log, class C>
__device__ inline C gradient_of(C g, C y, C sum) {
  if constexpr (log) {
    return g - exp_of(y) * sum;
  } else {
    return y * (g - sum);
  }
}

/// Like softmax_in_registers, with both rows in registers.
template <class Group, class T, int kWidth, int kPacks, bool log>
__device__ inline void gradient_in_registers(const T* g, const T* y, T* dx, int n) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  using Elements = Pack<T, kWidth>;
  const int first = Group::rank() * kWidth, step = Group::size() * kWidth;
  Elements gs[kPacks], ys[kPacks];
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int at = first + p * step;
    if (at >= n) continue;
    gs[p] = vector_at<Elements>(g + at);
    ys[p] = vector_at<Elements>(y + at);
  }
  S own = S(0);
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    if (first + p * step >= n) continue;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      own += static_cast<S>(gradient_term<log>(convert<C>(gs[p][i]), convert<C>(ys[p][i])));
    }
  }
  const C sum = static_cast<C>(Group::reduce(own, Plus{}, S(0)));
  LEVIN_PRAGMA_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    const int at = first + p * step;
    if (at >= n) continue;
    Elements pack;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      pack[i] = convert<T>(gradient_of<log>(convert<C>(gs[p][i]), convert<C>(ys[p][i]), sum));
    }
    vector_at<Elements>(dx + at) = pack;
  }
}

inline constexpr int kGradientWarps = 128;  // threads per block whose warps have a row each

/// Maximum number of elements of both rows that a thread of a warp or a block keeps.
template <class Group, class T>
inline constexpr int kMostGradientElements = (std::is_same_v<Group, WarpGroup> ? 32 : 16) / (sizeof(T) == 8 ? 2 : 1);

template <class Group, class T, int kWidth, int kElements, bool log>
__global__ void __launch_bounds__(std::is_same_v<Group, WarpGroup> ? kGradientWarps : kMostSoftmaxThreads)
    softmax_gradient_registers(SoftmaxGradient<T> s) {
  const std::int64_t row = Group::number(), at = row * s.n;
  if (row >= s.outer) return;  // only for warps: a block always has a row
  gradient_in_registers<Group, T, kWidth, kElements / kWidth, log>(s.g + at, s.y + at, s.dx + at,
                                                                   static_cast<int>(s.n));
}

/// One block per row of any length.
template <class T, bool log>
__global__ void softmax_gradient_rows(SoftmaxGradient<T> s) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * s.n;
  const T *const g = s.g + at, *const y = s.y + at;
  S own = S(0);
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < s.n; i += kSoftmaxThreads) {
    own += static_cast<S>(gradient_term<log>(convert<C>(g[i]), convert<C>(y[i])));
  }
  const C sum = static_cast<C>(block_reduce(own, Plus{}, S(0)));
  for (std::int64_t i = static_cast<int>(threadIdx.x); i < s.n; i += kSoftmaxThreads) {
    s.dx[at + i] = convert<T>(gradient_of<log>(convert<C>(g[i]), convert<C>(y[i]), sum));
  }
}

template <class T, bool log>
__global__ void softmax_gradient_columns(SoftmaxGradient<T> s) {
  using C = ComputeType<T>;
  using S = WideSum<T>;
  LEVIN_SHARED(S, sums, kColumnRows, 32);
  const ColumnPlace place(s.outer, s.n, s.inner);
  S own = S(0);
  if (place.valid) {
    for (std::int64_t i = place.row; i < s.n; i += kColumnRows) {
      const std::int64_t at = place.first + i * place.step;
      own += static_cast<S>(gradient_term<log>(convert<C>(s.g[at]), convert<C>(s.y[at])));
    }
  }
  sums[place.row][place.column] = own;
  __syncthreads();
  if (!place.valid) return;
  S all = S(0);
  for (int r = 0; r < kColumnRows; ++r) all += sums[r][place.column];
  for (std::int64_t i = place.row; i < s.n; i += kColumnRows) {
    const std::int64_t at = place.first + i * place.step;
    s.dx[at] = convert<T>(gradient_of<log>(convert<C>(s.g[at]), convert<C>(s.y[at]), static_cast<C>(all)));
  }
}

namespace {

template <class T, int kWidth, bool log>
void launch_in_registers(const SoftmaxGradient<T>& s, Stream& stream) {
  constexpr int kWarpMost = kMostGradientElements<WarpGroup, T>, kBlockMost = kMostGradientElements<BlockGroup, T>;
  if (s.n <= 32 * kWarpMost) {
    const auto kernel = s.n <= 32 * 8 ? softmax_gradient_registers<WarpGroup, T, kWidth, 8, log>
                                      : softmax_gradient_registers<WarpGroup, T, kWidth, kWarpMost, log>;
    const auto blocks = static_cast<unsigned>(ceil_div(s.outer * 32, kGradientWarps));
    return launch(kernel, {.grid = blocks, .block = kGradientWarps, .stream = stream}, s);
  }
  const unsigned threads = s.n <= 256 * kBlockMost ? 256 : kMostSoftmaxThreads;
  const auto kernel = s.n <= 256 * 8 ? softmax_gradient_registers<BlockGroup, T, kWidth, 8, log>
                                     : softmax_gradient_registers<BlockGroup, T, kWidth, kBlockMost, log>;
  launch(kernel, {.grid = static_cast<unsigned>(s.outer), .block = threads, .stream = stream}, s);
}

template <bool log>
void run_backward(const SoftmaxBackwardArgs& a, const char* op, Stream& stream) {
  if (a.outer * a.n * a.inner == 0) return;
  dispatch_floating(a.y.dtype, op, [&]<class T>() {
    using D = DeviceType<T>;
    const SoftmaxGradient<D> s{reinterpret_cast<const D*>(a.g.data<T>()),
                               reinterpret_cast<const D*>(a.y.data<T>()),
                               reinterpret_cast<D*>(a.dx.data<T>()),
                               a.outer,
                               a.n,
                               a.inner};
    if (s.inner > 1) {
      launch(softmax_gradient_columns<D, log>, column_blocks(s.outer * s.inner, stream), s);
    } else if (s.n > kMostSoftmaxThreads * kMostGradientElements<BlockGroup, D>) {
      launch(softmax_gradient_rows<D, log>,
             {.grid = static_cast<unsigned>(s.outer), .block = kSoftmaxThreads, .stream = stream}, s);
    } else if (rows_are_aligned(SoftmaxRows<D>{s.g, s.dx, s.outer, s.n}) &&
               reinterpret_cast<std::uintptr_t>(s.y) % 16 == 0) {
      launch_in_registers<D, kVectorWidth<D>, log>(s, stream);
    } else {
      launch_in_registers<D, 1, log>(s, stream);
    }
  });
}

}  // namespace

void softmax_backward(const SoftmaxBackwardArgs& a, Stream& stream) {
  run_backward<false>(a, "softmax_backward", stream);
}

void log_softmax_backward(const SoftmaxBackwardArgs& a, Stream& stream) {
  run_backward<true>(a, "log_softmax_backward", stream);
}

}  // namespace levin::kernels::cuda
