#pragma once
// Rung 5, which ships for 16-bit floats on GPUs of compute capability 9: FlashAttention on wgmma, forward (Shah et al.,
// "FlashAttention-3", 2024).
// Idea: the products of a tile run while the softmax of the next one is computed. Changes against rung 3: a block has
// two warpgroups of 64 rows each, which multiply by tiles of 128 rows of k and v straight from shared memory; the
// scores of the next tile are started before the product of this tile's weights with v, so that the tensor cores have
// work during the exponentials. Bound: the exponentials of the two warpgroups, which a barrier keeps in step.

#include "kernels/cuda/attention/03_flash_forward.cuh"
#include "kernels/cuda/attention/tile_group.cuh"

namespace levin::kernels::cuda {

template <class T, int D>
struct GroupForward {
  static constexpr int kThreads = 256;
  using Queries = GroupRows<T, 128, D>;
  using Keys = GroupRows<T, 128, D>;
  static constexpr std::size_t kShared = sizeof(T) * (Queries::kElements + 4 * Keys::kElements);
};

template <class T, int D>
__global__ void __launch_bounds__(GroupForward<T, D>::kThreads, 1) flash_forward_warpgroups(AttentionProblem<T> p) {
  using Shape = GroupForward<T, D>;
  using Queries = typename Shape::Queries;
  using Keys = typename Shape::Keys;
  T* q = dynamic_shared<T>();                // (128, D)
  T* ring_k = q + Queries::kElements;        // (2, 128, D)
  T* ring_v = ring_k + 2 * Keys::kElements;  // (2, 128, D)
  const auto k = [&](int tile) { return ring_k + tile % 2 * Keys::kElements; };
  const auto v = [&](int tile) { return ring_v + tile % 2 * Keys::kElements; };
  const FlashBlock block(p, Queries::kRows);
  const int tiles = (block.columns + Keys::kRows - 1) / Keys::kRows;
  GroupCopy<Keys, Shape::kThreads, D> copy_k(p.k, block.problem, 0, p.columns, p.width);
  GroupCopy<Keys, Shape::kThreads, D> copy_v(p.v, block.problem, 0, p.columns, p.values);
  GroupCopy<Queries, Shape::kThreads, D>(p.q, block.problem, block.first, p.rows, p.width).next(q);
  copy_k.next(k(0));
  ptx::cp_async_commit();

  // First rows of the warp and of its warpgroup in the block. The shuffle shows ptxas that a warp's lanes agree.
  const int row = __shfl_sync(0xffffffffu, ptx::warp_id() * 16, 0), group_row = row / 64 * 64;
  const float scale = p.scale * kLog2E;
  WarpTiles<1, Keys::kRows / 8> scores;
  WarpTiles<1, D / 8> sums = {};
  std::uint32_t weights[Keys::kRows / 16][4];
  HalfSoftmax<1> softmax;
  float factors[1][2];

  ptx::cp_async_wait<0>();
  __syncthreads();
  ptx::wgmma_fence();
  Keys::template dot<Queries>(scores[0], q, group_row, k(0));
  ptx::wgmma_commit();
  if (tiles > 1) copy_k.next(k(1));
  copy_v.next(v(0));
  ptx::cp_async_commit();
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(scores[0]);
  softmax.advance(scores, factors, p, scale, block.first + row, 0);
  pack_weights<T>(weights, scores[0]);

  for (int tile = 0; tile + 1 < tiles; ++tile) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // k(tile + 1) and v(tile) are written; all have used k(tile) and v(tile - 1)
    ptx::wgmma_hold(scores[0]);
    ptx::wgmma_hold(sums[0]);
    ptx::wgmma_hold(weights);
    ptx::wgmma_fence();
    Keys::template dot<Queries>(scores[0], q, group_row, k(tile + 1));
    ptx::wgmma_commit();
    Keys::add_product(sums[0], weights, v(tile));
    ptx::wgmma_commit();
    if (tile + 2 < tiles) copy_k.next(k(tile));
    copy_v.next(v(tile + 1));
    ptx::cp_async_commit();
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(scores[0]);
    softmax.advance(scores, factors, p, scale, block.first + row, (tile + 1) * Keys::kRows);
    ptx::wgmma_wait_behind<0>(softmax.rows[0][0].sum + softmax.rows[0][1].sum);
    ptx::wgmma_hold(sums[0]);
    ptx::wgmma_hold(weights);
    softmax.rescale(sums, factors);
    pack_weights<T>(weights, scores[0]);
  }
  ptx::cp_async_wait<0>();
  __syncthreads();
  ptx::wgmma_hold(sums[0]);
  ptx::wgmma_hold(weights);
  ptx::wgmma_fence();
  Keys::add_product(sums[0], weights, v(tiles - 1));
  ptx::wgmma_commit();
  softmax.finish();
  float factor[1][2];
  LEVIN_PRAGMA_UNROLL
  for (int half = 0; half < 2; ++half) {
    factor[0][half] = 1.0f / softmax.rows[0][half].sum;
    const int r = row + 8 * half + ptx::lane_id() / 4;
    if (ptx::lane_id() % 4 == 0 && r < block.rows)
      p.lse[block.problem * p.rows + block.first + r] = softmax.rows[0][half].lse();
  }
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(sums[0]);
  ptx::wgmma_hold(weights);
  store_tiles(p.out.row(block.problem, block.first), sums, factor, row, block.rows, p.values, p.out.line);
}

template <int D, class T>
void launch_warpgroup_forward(const AttentionProblem<T>& p, Stream& stream) {
  using Shape = GroupForward<T, D>;
  const std::int64_t blocks = p.batch * ceil_div(p.rows, Shape::Queries::kRows);
  launch(flash_forward_warpgroups<T, D>,
         {.grid = static_cast<unsigned>(blocks), .block = Shape::kThreads, .shared = Shape::kShared, .stream = stream},
         p);
}

template <class T>
void run_attention_warpgroups(const AttentionProblem<T>& p, Stream& stream) {
  if (is_narrow(p))
    launch_warpgroup_forward<64>(p, stream);
  else
    launch_warpgroup_forward<128>(p, stream);
}

}  // namespace levin::kernels::cuda
