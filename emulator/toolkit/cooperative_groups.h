#pragma once
// Cooperative groups in the emulator: the part of the toolkit's header that kernels use, under the same names.

#include <levin/emulator/builtins.h>

#include <bit>

namespace cooperative_groups {

using Site = ::levin::emulator::Site;

/// All threads of the block.
class thread_block {
 public:
  static void sync(Site site = Site::current()) { ::levin::emulator::block_barrier("thread_block::sync", 0, 0, site); }
  static unsigned thread_rank() { return static_cast<unsigned>(::levin::emulator::thread_number()); }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

/// A tile of `Size` neighbouring threads of a warp, partitioned from a block or from a larger tile.
template <unsigned Size, class Parent = void>
class thread_block_tile {
  static_assert(std::has_single_bit(Size) && Size <= 32, "tiles have 1, 2, 4, 8, 16 or 32 threads");

 public:
  thread_block_tile(unsigned meta_rank, unsigned meta_size) : meta_rank_(meta_rank), meta_size_(meta_size) {}
  template <class Other>
  thread_block_tile(const thread_block_tile<Size, Other>& other)
      : thread_block_tile(other.meta_group_rank(), other.meta_group_size()) {}

  void sync(Site site = Site::current()) const { __syncwarp(mask(), site); }
  static unsigned thread_rank() { return static_cast<unsigned>(::levin::emulator::lane()) % Size; }
  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  /// Return the tile's rank among the tiles of its parent, and their number.
  unsigned meta_group_rank() const { return meta_rank_; }
  unsigned meta_group_size() const { return meta_size_; }

  template <class T>
  T shfl(T value, unsigned rank, Site site = Site::current()) const {
    return __shfl_sync(mask(), value, static_cast<int>(rank), kSize, site);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, Site site = Site::current()) const {
    return __shfl_up_sync(mask(), value, delta, kSize, site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, Site site = Site::current()) const {
    return __shfl_down_sync(mask(), value, delta, kSize, site);
  }
  template <class T>
  T shfl_xor(T value, unsigned bits, Site site = Site::current()) const {
    return __shfl_xor_sync(mask(), value, static_cast<int>(bits), kSize, site);
  }
  int any(int predicate, Site site = Site::current()) const { return __any_sync(mask(), predicate, site); }
  int all(int predicate, Site site = Site::current()) const { return __all_sync(mask(), predicate, site); }
  /// Returns a mask whose bit r is the predicate of the tile's thread r.
  unsigned ballot(int predicate, Site site = Site::current()) const {
    return __ballot_sync(mask(), predicate, site) >> first_lane();
  }

 private:
  static constexpr int kSize = static_cast<int>(Size);
  static unsigned first_lane() { return static_cast<unsigned>(::levin::emulator::lane()) / Size * Size; }
  static unsigned mask() { return (0xffffffffu >> (32 - Size)) << first_lane(); }

  unsigned meta_rank_, meta_size_;
};

template <unsigned Size>
thread_block_tile<Size, thread_block> tiled_partition(const thread_block& block) {
  return {block.thread_rank() / Size, (block.num_threads() + Size - 1) / Size};
}
template <unsigned Size, unsigned ParentSize, class Grandparent>
thread_block_tile<Size, thread_block_tile<ParentSize, Grandparent>> tiled_partition(
    const thread_block_tile<ParentSize, Grandparent>& tile) {
  static_assert(Size <= ParentSize, "a tile cannot be larger than what it is cut from");
  return {tile.thread_rank() / Size, ParentSize / Size};
}

/// The lanes of the warp that have not ended. On the GPU it is the lanes that run together at this place, so use it
/// only after other lanes have returned.
class coalesced_group {
 public:
  coalesced_group() : mask_(__activemask()) {}

  void sync(Site site = Site::current()) const { __syncwarp(mask_, site); }
  unsigned thread_rank() const {
    return static_cast<unsigned>(std::popcount(mask_ & ((1u << ::levin::emulator::lane()) - 1)));
  }
  unsigned num_threads() const { return static_cast<unsigned>(std::popcount(mask_)); }
  unsigned size() const { return num_threads(); }

  template <class T>
  T shfl(T value, unsigned rank, Site site = Site::current()) const {
    return __shfl_sync(mask_, value, lane_of(rank % num_threads()), 32, site);
  }
  /// Returns the thread's own value if the source thread does not exist.
  template <class T>
  T shfl_up(T value, unsigned delta, Site site = Site::current()) const {
    const unsigned own = thread_rank();
    return shfl(value, delta <= own ? own - delta : own, site);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, Site site = Site::current()) const {
    const unsigned own = thread_rank();
    return shfl(value, own + delta < num_threads() ? own + delta : own, site);
  }
  int any(int predicate, Site site = Site::current()) const { return __any_sync(mask_, predicate, site); }
  int all(int predicate, Site site = Site::current()) const { return __all_sync(mask_, predicate, site); }
  unsigned ballot(int predicate, Site site = Site::current()) const {
    const unsigned lanes = __ballot_sync(mask_, predicate, site);
    unsigned ranks = 0;
    for (unsigned r = 0; r < num_threads(); ++r) ranks |= (lanes >> lane_of(r) & 1) << r;
    return ranks;
  }

 private:
  /// Returns the position of the mask's set bit with `rank` set bits below it.
  int lane_of(unsigned rank) const {
    unsigned rest = mask_;
    while (rank-- > 0) rest &= rest - 1;
    return std::countr_zero(rest);
  }

  unsigned mask_;
};
inline coalesced_group coalesced_threads() { return {}; }

/// All blocks of the cluster; one block if the launch has no clusters.
class cluster_group {
 public:
  static void sync(Site site = Site::current()) { ::levin::emulator::cluster_barrier("cluster_group::sync", site); }
  static unsigned block_rank() { return static_cast<unsigned>(::levin::emulator::cluster_rank()); }
  static unsigned num_blocks() { return static_cast<unsigned>(::levin::emulator::cluster_size()); }
  static unsigned thread_rank() { return block_rank() * thread_block::num_threads() + thread_block::thread_rank(); }
  static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned size() { return num_threads(); }
  /// Returns the address in block `rank` of the cluster that corresponds to p in this block's shared memory.
  template <class T>
  static T* map_shared_rank(T* p, unsigned rank, Site site = Site::current()) {
    return static_cast<T*>(::levin::emulator::map_shared(p, static_cast<int>(rank), site));
  }
};
inline cluster_group this_cluster() { return {}; }

/// All blocks of the grid.
class grid_group {
 public:
  static unsigned long long block_rank() {
    return blockIdx.x + gridDim.x * (blockIdx.y + static_cast<unsigned long long>(gridDim.y) * blockIdx.z);
  }
  static unsigned long long num_blocks() { return static_cast<unsigned long long>(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static void sync(Site site = Site::current()) {
    if (num_blocks() != 1) {
      ::levin::emulator::fail(
          "grid_group::sync: the emulator runs a grid's blocks one after the other, so only a grid "
          "of one block can wait for itself: use two launches",
          site);
    }
    ::levin::emulator::block_barrier("grid_group::sync", 0, 0, site);
  }
};
inline grid_group this_grid() { return {}; }

template <class Group>
void sync(const Group& group, Site site = Site::current()) {
  group.sync(site);
}

}  // namespace cooperative_groups
