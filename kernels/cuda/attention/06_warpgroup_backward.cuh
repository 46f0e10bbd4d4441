#pragma once
// Rung 6, which ships for 16-bit floats on GPUs of compute capability 9: FlashAttention on wgmma, backward.
// Idea: the products of one tile run while the exponentials of the next are computed. Changes against rung 4: a block
// has two warpgroups, each of which owns 64 rows; the products with a tile's weights and score gradients, whose
// operands A are registers, end during the next tile, so there are three buffers. Bound: the products, whose scores
// (64, 64) per warpgroup need all of shared memory's bandwidth.

#include "kernels/cuda/attention/04_flash_backward.cuh"
#include "kernels/cuda/attention/tile_group.cuh"

namespace levin::kernels::cuda {

template <class T, int D>
struct GroupBackward {
  static constexpr int kThreads = 256, kStages = 3;
  using Own = GroupRows<T, 128, D>;     // of the two matrices whose rows the block owns
  using Passing = GroupRows<T, 64, D>;  // of the two others
  using OwnCopy = GroupCopy<Own, kThreads, D>;
  using PassingCopy = GroupCopy<Passing, kThreads, D>;
  static constexpr int kStage = 2 * Passing::kElements;
  static constexpr std::size_t kTiles = sizeof(T) * (2 * Own::kElements + kStages * kStage);  // bytes
  static constexpr std::size_t kConstants = sizeof(float) * 2 * kStages * Passing::kRows;
  using Sums = WarpTiles<1, D / 8>;
  using Scores = WarpTiles<1, Passing::kRows / 8>;
  using Weights = std::uint32_t[Passing::kRows / 16][4];

  /// Starts both products of the rows from `row` on with a stage: one group for the scores, one for dp.
  __device__ static void begin(Scores& scores, Scores& dp, const T* own, int row, const T* stage) {
    ptx::wgmma_hold(scores[0]);
    ptx::wgmma_hold(dp[0]);
    ptx::wgmma_fence();
    Passing::template dot<Own>(scores[0], own, row, stage);
    ptx::wgmma_commit();
    Passing::template dot<Own>(dp[0], own + Own::kElements, row, stage + Passing::kElements);
    ptx::wgmma_commit();
  }
  /// Starts sums += weights times a tile of the stage.
  __device__ static void add(Sums& sums, Weights& weights, const T* tile) {
    ptx::wgmma_hold(sums[0]);
    ptx::wgmma_hold(weights);
    ptx::wgmma_fence();
    Passing::add_product(sums[0], weights, tile);
    ptx::wgmma_commit();
  }
};

/// Computes dk and dv of 128 columns. The scores are transposed: rows of k run down, rows of q across.
template <class T, int D>
__global__ void __launch_bounds__(GroupBackward<T, D>::kThreads, 1)
    flash_keys_warpgroups(AttentionGradients<T> p, const float* delta) {
  using Shape = GroupBackward<T, D>;
  constexpr int kRows = Shape::Passing::kRows;
  T* own = dynamic_shared<T>();                                                     // k (128, D), then v
  T* ring = own + 2 * Shape::Own::kElements;                                        // (stage, q then g, 64, D)
  auto* lse2_of = reinterpret_cast<float*>(ring + Shape::kStages * Shape::kStage);  // (stage, 64), in powers of 2
  float* delta_of = lse2_of + Shape::kStages * kRows;                               // (stage, 64)
  const auto blocks = static_cast<unsigned>(ceil_div(p.columns, Shape::Own::kRows));
  const std::int64_t problem = blockIdx.x / blocks;
  const int column = static_cast<int>(blockIdx.x % blocks) * Shape::Own::kRows;
  const int begin = first_row(p, column, kRows), thread = static_cast<int>(threadIdx.x);
  typename Shape::PassingCopy copy_q(p.q, problem, begin, p.rows, p.width);
  typename Shape::PassingCopy copy_g(p.g, problem, begin, p.rows, p.values);
  const auto fetch = [&](int stage, bool exists) {
    if (exists) {
      copy_q.next(ring + stage * Shape::kStage);
      copy_g.next(ring + stage * Shape::kStage + Shape::Passing::kElements);
    }
    ptx::cp_async_commit();
  };
  const auto constants_of = [&](int row) {
    const bool exists = thread < kRows && row + thread < p.rows;
    return row_constants(p.lse, delta, problem * p.rows + row + thread, exists);
  };
  typename Shape::OwnCopy(p.k, problem, column, p.columns, p.width).next(own);
  typename Shape::OwnCopy(p.v, problem, column, p.columns, p.values).next(own + Shape::Own::kElements);
  fetch(0, begin < p.rows);
  RowConstants constants = constants_of(begin);

  const int row_of_warp = __shfl_sync(0xffffffffu, ptx::warp_id() * 16, 0), t = ptx::lane_id() % 4;
  const int own_column = column + row_of_warp + ptx::lane_id() / 4;
  const float scale = p.scale * kLog2E;
  typename Shape::Sums dk = {}, dv = {};
  typename Shape::Scores scores, dp;
  typename Shape::Weights weights, ds;
  int stage = 0;
  for (int row = begin; row < p.rows; row += kRows) {
    if (thread < kRows)
      lse2_of[stage * kRows + thread] = constants.lse2, delta_of[stage * kRows + thread] = constants.delta;
    ptx::cp_async_wait<0>();
    __syncthreads();  // the stage is written; all have waited for the products of the last but one
    const T *q_tile = ring + stage * Shape::kStage, *g_tile = q_tile + Shape::Passing::kElements;
    Shape::begin(scores, dp, own, row_of_warp / 64 * 64, q_tile);
    const int next = stage + 1 == Shape::kStages ? 0 : stage + 1;
    fetch(next, row + kRows < p.rows);
    constants = constants_of(row + kRows);

    // Rows of q that do not exist are zeros and add nothing, as do their constants.
    // Hidden are elements whose column is more than `reach` behind 8 n + c % 2 of its row; a select, as a branch would
    // make ptxas serialise the products.
    const int reach = p.causal ? row + 2 * t - own_column : kRows + Shape::Own::kRows;
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(scores[0]);
    ptx::wgmma_hold(weights);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < kRows / 8; ++n) {
      const auto lse2 = pack_at<2>(&lse2_of[stage * kRows + 8 * n + 2 * t]);
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) {
        const float weight = ptx::exp2_flushed(fmaf(scores[0][n][c], scale, -lse2[c % 2]));
        scores[0][n][c] = 8 * (c / 2) - 8 * n - c % 2 <= reach ? weight : 0;
      }
    }
    pack_weights<T>(weights, scores[0]);
    Shape::add(dv, weights, g_tile);
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(dp[0]);
    ptx::wgmma_hold(ds);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < kRows / 8; ++n) {
      const auto row_delta = pack_at<2>(&delta_of[stage * kRows + 8 * n + 2 * t]);
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) {
        const float ds_of = scores[0][n][c] * (dp[0][n][c] - row_delta[c % 2]);
        dp[0][n][c] = 8 * (c / 2) - 8 * n - c % 2 <= reach ? ds_of : 0;
      }
    }
    pack_weights<T>(ds, dp[0]);
    Shape::add(dk, ds, q_tile);
    stage = next;
  }
  ptx::cp_async_wait_all();
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(dk[0]);
  ptx::wgmma_hold(dv[0]);
  const float one[1][2] = {{1, 1}}, factor[1][2] = {{p.scale, p.scale}};
  store_tiles(p.dk.row(problem, column), dk, factor, row_of_warp, p.columns - column, p.width, p.dk.line);
  store_tiles(p.dv.row(problem, column), dv, one, row_of_warp, p.columns - column, p.values, p.dv.line);
}

/// Computes dq of 128 rows.
template <class T, int D>
__global__ void __launch_bounds__(GroupBackward<T, D>::kThreads, 1)
    flash_queries_warpgroups(AttentionGradients<T> p, const float* delta) {
  using Shape = GroupBackward<T, D>;
  constexpr int kColumns = Shape::Passing::kRows;
  T* own = dynamic_shared<T>();               // q (128, D), then g
  T* ring = own + 2 * Shape::Own::kElements;  // (stage, k then v, 64, D)
  const FlashBlock block(p, Shape::Own::kRows);
  typename Shape::PassingCopy copy_k(p.k, block.problem, 0, p.columns, p.width);
  typename Shape::PassingCopy copy_v(p.v, block.problem, 0, p.columns, p.values);
  const auto fetch = [&](int stage, bool exists) {
    if (exists) {
      copy_k.next(ring + stage * Shape::kStage);
      copy_v.next(ring + stage * Shape::kStage + Shape::Passing::kElements);
    }
    ptx::cp_async_commit();
  };
  typename Shape::OwnCopy(p.q, block.problem, block.first, p.rows, p.width).next(own);
  typename Shape::OwnCopy(p.g, block.problem, block.first, p.rows, p.values).next(own + Shape::Own::kElements);
  fetch(0, true);

  const int row = __shfl_sync(0xffffffffu, ptx::warp_id() * 16, 0), g = ptx::lane_id() / 4, t = ptx::lane_id() % 4;
  const float scale = p.scale * kLog2E;
  RowConstants constants[2];
  int visible[2];
  LEVIN_PRAGMA_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int r = row + g + 8 * half;
    constants[half] = row_constants(p.lse, delta, block.problem * p.rows + block.first + r, r < block.rows);
    visible[half] = p.visible(block.first + r);
  }
  typename Shape::Sums dq = {};
  typename Shape::Scores scores, dp;
  typename Shape::Weights ds;
  int stage = 0;
  for (int column = 0; column < block.columns; column += kColumns) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // the stage is written; all have waited for the product of the last but one
    const T* k_tile = ring + stage * Shape::kStage;
    Shape::begin(scores, dp, own, row / 64 * 64, k_tile);
    const int next = stage + 1 == Shape::kStages ? 0 : stage + 1;
    fetch(next, column + kColumns < block.columns);

    const bool whole = column + kColumns <= p.visible(block.first + row);
    ptx::wgmma_wait<1>();
    ptx::wgmma_hold(scores[0]);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c)
        scores[0][n][c] = ptx::exp2_flushed(fmaf(scores[0][n][c], scale, -constants[c / 2].lse2));
    }
    ptx::wgmma_wait<0>();
    ptx::wgmma_hold(dp[0]);
    ptx::wgmma_hold(ds);
    LEVIN_PRAGMA_UNROLL
    for (int n = 0; n < kColumns / 8; ++n) {
      LEVIN_PRAGMA_UNROLL
      for (int c = 0; c < 4; ++c) dp[0][n][c] = scores[0][n][c] * (dp[0][n][c] - constants[c / 2].delta);
    }
    if (!whole) {
      LEVIN_PRAGMA_UNROLL
      for (int i = 0; i < kColumns / 2; ++i) {  // element i % 4 of tile i / 4
        if (column + i / 4 * 8 + 2 * t + i % 2 >= visible[i % 4 / 2]) dp[0][i / 4][i % 4] = 0;
      }
    }
    pack_weights<T>(ds, dp[0]);
    Shape::add(dq, ds, k_tile);
    stage = next;
  }
  ptx::cp_async_wait_all();
  ptx::wgmma_wait<0>();
  ptx::wgmma_hold(dq[0]);
  const float factor[1][2] = {{p.scale, p.scale}};
  store_tiles(p.dq.row(block.problem, block.first), dq, factor, row, block.rows, p.width, p.dq.line);
}

template <int D, class T>
void launch_warpgroup_backward(const AttentionGradients<T>& p, const float* delta, Stream& stream) {
  using Shape = GroupBackward<T, D>;
  const auto launch_one = [&](auto kernel, std::int64_t rows, std::size_t shared) {
    launch(kernel,
           {.grid = static_cast<unsigned>(p.batch * ceil_div(rows, Shape::Own::kRows)),
            .block = Shape::kThreads,
            .shared = shared,
            .stream = stream},
           p, delta);
  };
  launch_one(flash_keys_warpgroups<T, D>, p.columns, Shape::kTiles + Shape::kConstants);
  launch_one(flash_queries_warpgroups<T, D>, p.rows, Shape::kTiles);
}

template <class T>
void run_attention_backward_warpgroups(const AttentionGradients<T>& p, Stream& stream) {
  const Scratch<float> delta = flash_deltas(p, stream);
  if (is_narrow(p))
    launch_warpgroup_backward<64>(p, delta.get(), stream);
  else
    launch_warpgroup_backward<128>(p, delta.get(), stream);
}

}  // namespace levin::kernels::cuda
