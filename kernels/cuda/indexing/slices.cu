// Whole slices along an axis: cat, index_select and its adjoint, index_add.

#include "kernels/cuda/indexing/index.cuh"
#include "kernels/cuda/indexing/order.h"

namespace levin::kernels::cuda {

/// Parts side by side: part i fills columns [begin[i], begin[i + 1]) of the output's rows.
struct CatParts {
  static constexpr int kMost = 32;
  const void* data[kMost];
  std::int64_t begin[kMost + 1];
  int count = 0;
};

template <class T>
__global__ void cat_parts(T* out, std::int64_t row_length, std::int64_t rows, CatParts parts) {
  const std::int64_t first = parts.begin[0], columns = parts.begin[parts.count] - first;
  for (std::int64_t t = global_thread(); t < rows * columns; t += grid_threads()) {
    const Division at = divide(t, columns);
    const std::int64_t column = first + at.remainder;
    int low = 0, high = parts.count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (parts.begin[middle] <= column)
        low = middle;
      else
        high = middle;
    }
    const std::int64_t width = parts.begin[low + 1] - parts.begin[low];
    out[at.quotient * row_length + column] =
        static_cast<const T*>(parts.data[low])[at.quotient * width + column - parts.begin[low]];
  }
}

namespace {

/// Copies parts of some columns, as many as a launch takes.
void cat_launch(const CatArgs& a, const CatParts& bytes, std::int64_t rows, std::int64_t row_bytes, Stream& stream) {
  CommonUnit unit;
  unit.of(row_bytes).of(a.out.pointer);
  for (int i = 0; i < bytes.count; ++i) unit.of(bytes.data[i]).of(bytes.begin[i]).of(bytes.begin[i + 1]);
  with_unit(unit.bytes(), [&]<class T>() {
    CatParts parts = bytes;
    for (int i = 0; i <= parts.count; ++i) parts.begin[i] /= unit.bytes();
    const std::int64_t columns = parts.begin[parts.count] - parts.begin[0];
    launch(cat_parts<T>, {.grid = blocks_for(rows * columns), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), row_bytes / unit.bytes(), rows, parts);
  });
}

}  // namespace

void cat(const CatArgs& a, Stream& stream) {
  std::int64_t outer = 1, inner = size_of(a.out.dtype);
  for (int d = 0; d < a.axis; ++d) outer *= a.out.sizes[d];
  for (int d = a.axis + 1; d < a.out.dim(); ++d) inner *= a.out.sizes[d];
  const std::int64_t row_bytes = a.out.sizes[a.axis] * inner;
  if (outer * row_bytes == 0) return;
  CatParts parts;
  parts.begin[0] = 0;
  for (const TensorView& part : a.parts) {
    const std::int64_t bytes = part.sizes[a.axis] * inner;
    if (bytes == 0) continue;
    parts.data[parts.count] = part.pointer;
    parts.begin[parts.count + 1] = parts.begin[parts.count] + bytes;
    if (++parts.count < CatParts::kMost) continue;
    cat_launch(a, parts, outer, row_bytes, stream);
    parts.begin[0] = parts.begin[CatParts::kMost];
    parts.count = 0;
  }
  if (parts.count > 0) cat_launch(a, parts, outer, row_bytes, stream);
}

/// out (outer, k, inner) = x (outer, n, inner)[:, index, :]
template <class T>
__global__ void select_slices(T* out, const T* x, const std::int64_t* index, std::int64_t count, std::int64_t k,
                              IndexGuard guard, std::int64_t inner) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const Division slice = divide(t, inner), place = divide(slice.quotient, k);
    const std::int64_t row = index[place.remainder];
    const bool good = admits(guard, row, place.remainder);
    out[t] = good ? x[(place.quotient * guard.size + row) * inner + slice.remainder] : T{};
  }
}

void index_select(const IndexSelectArgs& a, Stream& stream) {
  const IndexGuard guard = index_guard(a.op, a.index.sizes, a.n, stream);
  const std::int64_t k = a.index.numel(), bytes = a.inner * size_of(a.out.dtype);
  if (a.outer * k * bytes == 0) return check_values(a.index, guard, stream);
  const std::int64_t unit = CommonUnit().of(bytes).of(a.out.pointer).of(a.x.pointer).bytes();
  with_unit(unit, [&]<class T>() {
    const std::int64_t inner = bytes / unit, count = a.outer * k * inner;
    launch(select_slices<T>, {.grid = blocks_for(count), .block = 256, .stream = stream},
           static_cast<T*>(a.out.pointer), static_cast<const T*>(a.x.pointer),
           static_cast<const std::int64_t*>(a.index.pointer), count, k, guard, inner);
  });
}

/// keys (k) = the rows; n for a slice to be skipped.
__global__ void row_keys(std::uint64_t* keys, const std::int64_t* index, std::int64_t k, IndexGuard guard,
                         std::int64_t skip) {
  for (std::int64_t i = global_thread(); i < k; i += grid_threads()) {
    const std::int64_t row = index[i];
    keys[i] = static_cast<std::uint64_t>(admits(guard, row, i) && row != skip ? row : guard.size);
  }
}

/// The thread of a row's first slice adds up all of them, so that the order is that of the index. keys ascend.
template <class T>
__global__ void add_slices(T* out, const T* source, const std::uint64_t* keys, const std::int64_t* places,
                           std::int64_t count, std::int64_t k, std::int64_t n, std::int64_t inner) {
  for (std::int64_t t = global_thread(); t < count; t += grid_threads()) {
    const Division slice = divide(t, inner), place = divide(slice.quotient, k);
    std::int64_t s = place.remainder;
    const std::uint64_t row = keys[s];
    if (row >= static_cast<std::uint64_t>(n) || (s > 0 && keys[s - 1] == row)) continue;
    T* to = out + (place.quotient * n + static_cast<std::int64_t>(row)) * inner + slice.remainder;
    const T* from = source + place.quotient * k * inner + slice.remainder;
    T sum = *to;
    for (; s + 4 <= k && keys[s + 3] == row; s += 4) {  // four loads in flight
      T terms[4];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) terms[i] = from[places[s + i] * inner];
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < 4; ++i) sum = add(sum, terms[i]);
    }
    for (; s < k && keys[s] == row; ++s) sum = add(sum, from[places[s] * inner]);
    *to = sum;
  }
}

void index_add(const IndexAddArgs& a, Stream& stream) {
  const IndexGuard guard = index_guard(a.op, a.index.sizes, a.n, stream);
  const std::int64_t k = a.index.numel(), count = a.outer * k * a.inner;
  dispatch_numeric(a.out.dtype, "index_add", [&]<class Element>() {
    using T = DeviceType<Element>;
    if (count == 0) return check_values(a.index, guard, stream);
    StableOrder order(stream, k);
    launch(row_keys, {.grid = blocks_for(k), .block = 256, .stream = stream}, order.keys(),
           static_cast<const std::int64_t*>(a.index.pointer), k, guard, a.skip);
    order.sort(a.n + 1);
    launch(add_slices<T>, {.grid = blocks_for(count), .block = 256, .stream = stream}, static_cast<T*>(a.out.pointer),
           static_cast<const T*>(a.source.pointer), order.keys(), order.places(), count, k, a.n, a.inner);
  });
}

}  // namespace levin::kernels::cuda
