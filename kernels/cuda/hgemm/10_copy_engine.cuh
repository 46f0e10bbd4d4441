#pragma once
// Rung 10, which ships for large products of 16-bit floats on GPUs of compute capability 9.
// Idea: the copy engine (TMA) fills the ring of buffers. One thread of a warp of its own starts a few copies per tile
// of k. Each buffer has two barriers in shared memory: one counts the bytes that have arrived, and at the other the
// multiplying warps arrive when they have read the buffer.
// Changes against rung 9: the multiplying warps compute no addresses and meet at no barrier, so that the two warpgroups
// may run apart; the engine fills what lies outside of an operand with zeros. Bound: the tensor cores and the power.

#include "kernels/cuda/hgemm/09_warpgroups.cuh"

namespace levin::kernels::cuda {

/// An operand for the copy engine: its axes run along the neighbours, across them, and along up to three of the batch.
struct MapOperand {
  TensorMap map;
  int rank = 3;
  int size[3] = {1, 1, 1}, moves[3] = {0, 0, 0};  ///< batch axes, and whether the operand moves along them
};

/// Returns the operand of tiles `Tile`; its box has all rows of a tile, at most 256.
template <class Tile, class T>
MapOperand map_operand(const Operand<T>& x, std::int64_t lines, std::int64_t k) {
  MapOperand y;
  TensorMapArgs args;
  args.base = x.data;
  args.size[0] = Tile::kAlongLines ? lines : k;
  args.size[1] = Tile::kAlongLines ? k : lines;
  args.stride[1] = (Tile::kAlongLines ? x.step : x.line) * static_cast<std::int64_t>(sizeof(T));
  args.box[0] = 64, args.box[1] = Tile::kRows;
  y.rank = args.rank = x.batch.axes > 1 ? 5 : 3;
  for (int i = 0; i < x.batch.axes; ++i) {
    y.size[i] = static_cast<int>(x.batch.size[i]);
    if (x.batch.stride[i] == 0) continue;
    y.moves[i] = 1;
    args.size[2 + i] = x.batch.size[i];
    args.stride[2 + i] = x.batch.stride[i] * static_cast<std::int64_t>(sizeof(T));
  }
  y.map = make_tensor_map(args);
  return y;
}

/// Starts copying a tile: `line` and `k` are its first.
template <class Tile, class T>
__device__ void copy_tile(T* tile, const MapOperand& x, std::int64_t batch, int line, int k, std::uint64_t* arrived) {
  int at[5] = {};
  if (x.rank == 3) {
    at[2] = x.moves[0] * static_cast<int>(batch);
  } else {
    LEVIN_PRAGMA_UNROLL
    for (int i = 0; i < 3; ++i) {
      at[2 + i] = x.moves[i] * static_cast<int>(batch % x.size[i]);
      batch /= x.size[i];
    }
  }
  LEVIN_PRAGMA_UNROLL
  for (int part = 0; part < Tile::kColumns / 64; ++part) {
    at[0] = Tile::kAlongLines ? line + 64 * part : k;
    at[1] = Tile::kAlongLines ? k : line;
    if (x.rank == 3) {
      ptx::copy_box<3>(tile + part * Tile::kRows * 64, x.map, at, arrived);
    } else {
      ptx::copy_box<5>(tile + part * Tile::kRows * 64, x.map, at, arrived);
    }
  }
}

/// The ring's position: a buffer, and the parity of the phase in which it is used.
struct RingPlace {
  int stage = 0, parity = 0;
  __device__ void next(int stages) {
    if (++stage == stages) stage = 0, parity ^= 1;
  }
};

template <class Tiles>
struct BulkTiles {
  static constexpr int kMultiplying = Tiles::kThreads, kThreads = kMultiplying + 128;
  static constexpr std::size_t kShared = Tiles::kShared + 2 * Tiles::kStages * sizeof(std::uint64_t);
};

template <class Tiles, class Out>
__global__ void __launch_bounds__(BulkTiles<Tiles>::kThreads, 1)
    hgemm_copy_engine(const __grid_constant__ MapOperand a, const __grid_constant__ MapOperand b, Out out,
                      TileGrid grid) {
  using T = typename Tiles::T;
  constexpr int kStages = Tiles::kStages, kMultiplying = BulkTiles<Tiles>::kMultiplying;
  T* shared = dynamic_shared<T>();                                                     // (stage, A's tile then B's)
  auto* arrived = reinterpret_cast<std::uint64_t*>(shared + kStages * Tiles::kStage);  // (stage)
  std::uint64_t* free = arrived + kStages;                                             // (stage)
  const int thread = static_cast<int>(threadIdx.x), tiles_of_k = static_cast<int>(grid.k_part / Tiles::kDepth);
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) {
      ptx::barrier_init(arrived + i, 1);
      ptx::barrier_init(free + i, kMultiplying / 32);
    }
    ptx::barrier_init_fence();
  }
  __syncthreads();

  RingPlace place;
  if (thread >= kMultiplying) {
    ptx::set_registers<24, false>();
    if (thread > kMultiplying) return;
    for (auto index = static_cast<int>(blockIdx.x); index < grid.count(); index += static_cast<int>(gridDim.x)) {
      const TilePlace tile = grid.at(index);
      int k = tile.split * static_cast<int>(grid.k_part);
      for (int i = 0; i < tiles_of_k; ++i, k += Tiles::kDepth, place.next(kStages)) {
        T* stage = shared + place.stage * Tiles::kStage;
        ptx::barrier_wait(free + place.stage, place.parity ^ 1);
        ptx::barrier_arrive(arrived + place.stage, Tiles::kStage * static_cast<int>(sizeof(T)));
        copy_tile<typename Tiles::A>(stage, a, tile.batch, tile.row * Tiles::kM, k, arrived + place.stage);
        copy_tile<typename Tiles::B>(stage + Tiles::A::kElements, b, tile.batch, tile.column * Tiles::kN, k,
                                     arrived + place.stage);
      }
    }
    return;
  }
  ptx::set_registers<240, true>();
  GroupSums<Tiles> group;
  const auto give_back = [&](int stage) {
    if (thread % 32 == 0) ptx::barrier_arrive(free + stage);
  };
  for (auto index = static_cast<int>(blockIdx.x); index < grid.count(); index += static_cast<int>(gridDim.x)) {
    int before = 0;
    for (int i = 0; i < tiles_of_k; ++i) {
      ptx::barrier_wait(arrived + place.stage, place.parity);
      group.multiply(shared + place.stage * Tiles::kStage, i == 0);
      ptx::wgmma_wait<1>();
      if (i > 0) give_back(before);
      before = place.stage;
      place.next(kStages);
    }
    group.wait();
    give_back(before);
    group.write(out, grid.at(index));
  }
}

/// True if the copy engine can read the operand: its batch has at most three axes, and its rows do not overlap.
template <class T>
bool fits_map(const Operand<T>& x, std::int64_t lines, std::int64_t k) {
  return x.batch.axes <= 3 && (x.step == 1 ? x.line >= k : x.step >= lines);
}

}  // namespace levin::kernels::cuda
