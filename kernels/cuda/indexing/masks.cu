// Elements selected by a condition: nonzero, triangles, one-hot rows.

#include "kernels/cuda/base/warp.h"
#include "kernels/cuda/indexing/index.cuh"

namespace levin::kernels::cuda {

namespace {

constexpr int kMaskThreads = 256;

template <class T>
__device__ bool is_nonzero(T x) {
  if constexpr (std::is_same_v<T, bool>)
    return x;
  else
    return convert<ComputeType<T>>(x) != ComputeType<T>(0);
}

}  // namespace

/// Elements [begin, end) of the block's chunk.
struct NonzeroChunk {
  __device__ explicit NonzeroChunk(std::int64_t count)
      : begin(blockIdx.x * kNonzeroChunk), end(begin + kNonzeroChunk < count ? begin + kNonzeroChunk : count) {}
  std::int64_t begin, end;
};

struct NonzeroPlaces {
  explicit NonzeroPlaces(const Shape& sizes) : dims(sizes.size()) {
    for (int d = 0; d < dims; ++d) size[d] = sizes[d];
  }
  int dims;
  std::int64_t size[kMaxDims];

  __device__ void write(std::int64_t element, std::int64_t* out) const {
    for (int d = dims - 1; d >= 0; --d) {
      const Division part = divide(element, size[d]);
      out[d] = part.remainder;
      element = part.quotient;
    }
  }
};

/// One block per chunk.
template <class T>
__global__ void count_chunk(const T* x, std::int64_t count, std::int64_t* counts) {
  const NonzeroChunk chunk(count);
  int own = 0;
  for (std::int64_t i = chunk.begin + threadIdx.x; i < chunk.end; i += kMaskThreads) own += is_nonzero(x[i]) ? 1 : 0;
  own = block_reduce(own, Plus{}, 0);
  if (threadIdx.x == 0) counts[blockIdx.x] = own;
}

void count_nonzero(const CountNonzeroArgs& a, Stream& stream) {
  const std::int64_t count = a.x.numel();
  dispatch_all(a.x.dtype, "nonzero", [&]<class Element>() {
    using T = DeviceType<Element>;
    launch(count_chunk<T>,
           {.grid = static_cast<unsigned>(ceil_div(count, kNonzeroChunk)), .block = kMaskThreads, .stream = stream},
           static_cast<const T*>(a.x.pointer), count, static_cast<std::int64_t*>(a.counts.pointer));
  });
}

/// One block per chunk, which begins where the preceding chunks end.
template <class T>
__global__ void write_nonzero(std::int64_t* out, const T* x, std::int64_t count, const std::int64_t* counts,
                              NonzeroPlaces coordinates) {
  LEVIN_SHARED(int, in_warp, kMaskThreads / 32);
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  std::int64_t first = 0;
  for (std::int64_t c = thread; c < blockIdx.x; c += kMaskThreads) first += counts[c];
  first = block_reduce(first, Plus{}, std::int64_t{0});
  const NonzeroChunk chunk(count);
  for (std::int64_t at = chunk.begin; at < chunk.end; at += kMaskThreads) {
    const std::int64_t i = at + thread;
    const bool chosen = i < chunk.end && is_nonzero(x[i]);
    const unsigned lanes = __ballot_sync(0xffffffffu, chosen);
    if (lane == 0) in_warp[warp] = __popc(lanes);
    __syncthreads();
    std::int64_t before = first + __popc(lanes & ((1u << lane) - 1u));
    for (int w = 0; w < kMaskThreads / 32; ++w) {
      if (w < warp) before += in_warp[w];
      first += in_warp[w];
    }
    if (chosen) coordinates.write(i, out + before * coordinates.dims);
    __syncthreads();
  }
}

void nonzero(const NonzeroArgs& a, Stream& stream) {
  const std::int64_t count = a.x.numel();
  dispatch_all(a.x.dtype, "nonzero", [&]<class Element>() {
    using T = DeviceType<Element>;
    launch(write_nonzero<T>,
           {.grid = static_cast<unsigned>(ceil_div(count, kNonzeroChunk)), .block = kMaskThreads, .stream = stream},
           static_cast<std::int64_t*>(a.out.pointer), static_cast<const T*>(a.x.pointer), count,
           static_cast<const std::int64_t*>(a.counts.pointer), NonzeroPlaces(a.x.sizes));
  });
}

template <class T>
__global__ void keep_triangle(T* out, const T* x, std::int64_t count, std::int64_t rows, std::int64_t columns,
                              std::int64_t diagonal, bool upper) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const Division at = divide(t, columns);
    const std::int64_t distance = at.remainder - divide(at.quotient, rows).remainder;
    out[t] = (upper ? distance >= diagonal : distance <= diagonal) ? x[t] : T(0);
  }
}

void triangle(const TriangleArgs& a, Stream& stream) {
  const std::int64_t count = a.batch * a.rows * a.columns;
  if (count == 0) return;
  with_element(size_of(a.out.dtype), [&]<class T>() {
    launch(keep_triangle<T>, {.grid = blocks_for(count), .block = kMaskThreads, .stream = stream},
           static_cast<T*>(a.out.pointer), static_cast<const T*>(a.x.pointer), count, a.rows, a.columns, a.diagonal,
           a.upper);
  });
}

__global__ void write_one_hot(std::int64_t* out, const std::int64_t* index, std::int64_t count, IndexGuard guard) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const Division at = divide(t, guard.size);
    const std::int64_t value = index[at.quotient];
    if (at.remainder == 0) admits(guard, value, at.quotient);
    out[t] = value == at.remainder ? 1 : 0;
  }
}

void one_hot(const OneHotArgs& a, Stream& stream) {
  const IndexGuard guard = index_guard("one_hot", a.index.sizes, a.classes, stream);
  const std::int64_t count = a.index.numel() * a.classes;
  if (count == 0) return check_values(a.index, guard, stream);
  launch(write_one_hot, {.grid = blocks_for(count), .block = kMaskThreads, .stream = stream},
         static_cast<std::int64_t*>(a.out.pointer), static_cast<const std::int64_t*>(a.index.pointer), count, guard);
}

}  // namespace levin::kernels::cuda
