// Cooperative groups: their members, and the exchanges between them.

#include "emulator/run_kernel.h"

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

using namespace levin::emulator;
namespace cg = cooperative_groups;

namespace {

/// Runs the kernel, which counts errors, with some seeds.
void check(dim3 grid, dim3 block, const std::function<void(std::atomic<int>&)>& kernel, std::size_t shared = 0,
           dim3 cluster = {}) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const WithSeed with(seed);
    std::atomic<int> wrong = 0;
    CHECK(run_kernel(
              grid, block, [&] { kernel(wrong); }, shared, cluster) == "");
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("the block: ranks, sizes, indices, a barrier") {
  check(
      3, {8, 4, 2},
      [](std::atomic<int>& wrong) {
        const cg::thread_block block = cg::this_thread_block();
        int* tile = dynamic_shared<int>();
        const unsigned rank = threadIdx.x + 8 * (threadIdx.y + 4 * threadIdx.z);
        wrong += block.thread_rank() != rank || block.size() != 64 || block.num_threads() != 64;
        wrong += block.group_index().x != blockIdx.x || block.thread_index().y != threadIdx.y;
        tile[rank] = static_cast<int>(rank);
        block.sync();
        wrong += tile[63 - rank] != static_cast<int>(63 - rank);
        cg::sync(block);
      },
      256);
}

namespace {

template <unsigned Size>
void check_tile(std::atomic<int>& wrong) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<Size>(block);
  const unsigned in_block = block.thread_rank(), rank = in_block % Size, first = in_block - rank;
  wrong += tile.thread_rank() != rank || tile.size() != Size || tile.num_threads() != Size;
  wrong += tile.meta_group_rank() != in_block / Size || tile.meta_group_size() != 64 / Size;
  wrong += tile.shfl(in_block, Size - 1) != first + Size - 1;
  wrong += tile.shfl_up(in_block, 1) != (rank == 0 ? in_block : in_block - 1);
  wrong += tile.shfl_down(in_block, 1) != (rank == Size - 1 ? in_block : in_block + 1);
  if constexpr (Size > 1) wrong += tile.shfl_xor(in_block, 1) != (in_block ^ 1);
  wrong += tile.any(in_block == 5) != (first <= 5 && 5 < first + Size);
  wrong += tile.all(in_block < 32) != (first < 32);
  wrong += tile.ballot(rank % 2 == 0) != (0x55555555u & (0xffffffffu >> (32 - Size)));
  tile.sync();
  float sum = 0;
  for (unsigned i = 0; i < Size; ++i) sum += static_cast<float>(first + i);
  wrong += cg::reduce(tile, static_cast<float>(in_block), cg::plus<float>()) != sum;
  wrong += cg::reduce(tile, static_cast<int>(in_block), cg::less<int>()) != static_cast<int>(first);
  wrong += cg::reduce(tile, in_block, cg::greater<unsigned>()) != first + Size - 1;
}

}  // namespace

TEST_CASE("tiles of every size: ranks, shuffles, votes, reductions") {
  check(1, 64, check_tile<1>);
  check(1, 64, check_tile<2>);
  check(1, 64, check_tile<4>);
  check(1, 64, check_tile<8>);
  check(1, 64, check_tile<16>);
  check(1, 64, check_tile<32>);
}

TEST_CASE("tiles of a warp may diverge") {
  check(1, 32, [](std::atomic<int>& wrong) {
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    unsigned sum = 0;
    for (unsigned i = 0; i <= tile.meta_group_rank(); ++i) sum += cg::reduce(tile, 1u, cg::plus<unsigned>());
    wrong += sum != 8 * (tile.meta_group_rank() + 1);
  });
}

TEST_CASE("tiles of tiles") {
  check(1, 64, [](std::atomic<int>& wrong) {
    const cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    const auto quarter = cg::tiled_partition<8>(warp);
    const unsigned thread = threadIdx.x;
    wrong += warp.meta_group_rank() != thread / 32;
    wrong += quarter.meta_group_rank() != thread % 32 / 8 || quarter.meta_group_size() != 4;
    wrong += quarter.shfl(thread, 3) != thread / 8 * 8 + 3;
  });
}

TEST_CASE("coalesced threads are those of the warp that still run") {
  check(1, 32, [](std::atomic<int>& wrong) {
    __syncwarp();
    if (threadIdx.x % 3 != 0) return;
    for (int i = 0; i < 20; ++i) yield_thread();  // waits until the others have returned
    const cg::coalesced_group group = cg::coalesced_threads();
    const unsigned rank = threadIdx.x / 3;
    wrong += group.size() != 11 || group.thread_rank() != rank;
    wrong += group.shfl(threadIdx.x, 2) != 6;
    wrong += group.shfl_up(threadIdx.x, 1) != (rank == 0 ? 0 : threadIdx.x - 3);
    wrong += group.shfl_down(threadIdx.x, 2) != (rank >= 9 ? threadIdx.x : threadIdx.x + 6);
    wrong += group.ballot(rank % 2 == 1) != 0x2aau;
    wrong += group.any(rank == 10) != 1 || group.all(rank < 10) != 0;
    group.sync();
  });
}

TEST_CASE("the cluster: ranks, and shared memory of its other blocks") {
  check(
      4, 32,
      [](std::atomic<int>& wrong) {
        const cg::cluster_group cluster = cg::this_cluster();
        int* mine = dynamic_shared<int>();
        const unsigned rank = cluster.block_rank();
        wrong += rank != blockIdx.x % 2 || cluster.num_blocks() != 2 || cluster.num_threads() != 64;
        wrong += cluster.thread_rank() != 32 * rank + threadIdx.x;
        mine[threadIdx.x] = static_cast<int>(100 * rank + threadIdx.x);
        cluster.sync();
        const int* other = cluster.map_shared_rank(mine, 1 - rank);
        wrong += other[threadIdx.x] != static_cast<int>(100 * (1 - rank) + threadIdx.x);
        cluster.sync();
      },
      128, 2);
}

TEST_CASE("the grid: ranks; only a single block can wait for itself") {
  std::vector<int> seen(3 * 2 * 40);
  CHECK(run_kernel({3, 2}, {20, 2}, [&] {
          const cg::grid_group grid = cg::this_grid();
          seen[grid.thread_rank()] += grid.size() == 240 && grid.num_blocks() == 6;
        }) == "");
  CHECK(seen == std::vector<int>(seen.size(), 1));
  check(1, 64, [](std::atomic<int>&) { cg::this_grid().sync(); });
  const std::string text = run_kernel(2, 32, [] { cg::this_grid().sync(); });
  CHECK(holds(text, "only a grid of one block can wait for itself"));
}
