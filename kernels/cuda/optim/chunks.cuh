#pragma once
// Lists of tensors in one launch: each tensor is cut into chunks, one per block.

#include "kernels/cuda/base/launch.h"

#include <initializer_list>

namespace levin::kernels::cuda::optim {

inline constexpr int kThreads = 256;
inline constexpr int kChunk = 8192;  ///< elements per block

/// Up to `Most` tensors of one type and the blocks at which they begin; a kernel argument, so at most 4 KiB.
template <class Member, int Most>
struct List {
  Member members[Most];
  std::uint32_t first_block[Most + 1];
  int count;

  List() { clear(); }
  void clear() {
    count = 0;
    first_block[0] = 0;
  }
  void add(const Member& m, std::int64_t numel) {
    members[count] = m;
    first_block[count + 1] = first_block[count] + static_cast<std::uint32_t>(ceil_div(numel, kChunk));
    ++count;
  }
  bool full() const { return count == Most; }
  std::uint32_t blocks() const { return first_block[count]; }

  /// Returns the member that a block works on.
  __device__ int find(std::uint32_t block) const {
    int low = 0, high = count;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_block[middle] <= block) {
        low = middle;
      } else {
        high = middle;
      }
    }
    return low;
  }
  /// Returns the first element of the block in its member.
  __device__ std::int64_t begin(int member, std::uint32_t block) const {
    return static_cast<std::int64_t>(block - first_block[member]) * kChunk;
  }
};

__device__ inline int chunk_size(std::int64_t left) { return static_cast<int>(left < kChunk ? left : kChunk); }

/// Up to Width elements, of which `left` exist, in the compute type.
template <class T, int Width>
__device__ inline void load(ComputeType<T> (&values)[Width], const void* from, std::int64_t at, int left, bool packed) {
  const T* p = static_cast<const T*>(from) + at;
  if (packed && left >= Width) {
    const auto pack = pack_at<Width>(p);
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i) values[i] = convert<ComputeType<T>>(pack[i]);
  } else {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i) values[i] = i < left ? convert<ComputeType<T>>(p[i]) : ComputeType<T>(0);
  }
}

template <class T, int Width>
__device__ inline void store(const ComputeType<T> (&values)[Width], void* to, std::int64_t at, int left, bool packed) {
  T* p = static_cast<T*>(to) + at;
  if (packed && left >= Width) {
    Pack<T, Width> pack;
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i) pack[i] = convert<T>(values[i]);
    pack_at<Width>(p) = pack;
  } else {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < Width; ++i)
      if (i < left) p[i] = convert<T>(values[i]);
  }
}

/// True if packs of 16 bytes are aligned at all of the addresses.
inline bool aligned(std::initializer_list<const void*> addresses) {
  for (const void* p : addresses)
    if (reinterpret_cast<std::uintptr_t>(p) % 16 != 0) return false;
  return true;
}

/// Calls f.operator()<T>(dtype) with the device type for every dtype among the tensors; throws DTypeError for those
/// that are not floating.
template <class Tensors, class F>
void for_each_dtype(const char* op, const Tensors& tensors, F&& f) {
  bool has[kDTypeCount] = {};
  for (const auto& t : tensors) has[static_cast<int>(t.dtype)] = true;
  for (int i = 0; i < kDTypeCount; ++i) {
    if (!has[i]) continue;
    const auto dtype = static_cast<DType>(i);
    dispatch_floating(dtype, op, [&]<class T>() { f.template operator()<DeviceType<T>>(dtype); });
  }
}

}  // namespace levin::kernels::cuda::optim
