// Each rung as a complete copy.
#include "kernels/cuda/transpose/ladder.h"

#include "kernels/cuda/transpose/01_naive.cuh"
#include "kernels/cuda/transpose/02_shared_tile.cuh"
#include "kernels/cuda/transpose/03_padded.cuh"
#include "kernels/cuda/transpose/04_packed.cuh"

#include <array>

namespace levin::kernels::cuda {

namespace {

bool can_any(const CopyArgs& a) { return find_transpose(a.out, a.x).has_value(); }
bool can_packed(const CopyArgs& a) {
  const auto p = find_transpose(a.out, a.x);
  return p && with_element(size_of(a.out.dtype), [&]<class T>() { return can_transpose_packed<T>(*p); });
}

void run_naive(const CopyArgs& a, Stream& stream) {
  with_element(size_of(a.out.dtype), [&]<class T>() { run_transpose_naive<T>(*find_transpose(a.out, a.x), stream); });
}
void run_shared_tile(const CopyArgs& a, Stream& stream) {
  with_element(size_of(a.out.dtype),
               [&]<class T>() { run_transpose_shared_tile<T>(*find_transpose(a.out, a.x), stream); });
}
void run_padded(const CopyArgs& a, Stream& stream) {
  with_element(size_of(a.out.dtype), [&]<class T>() { run_transpose_padded<T>(*find_transpose(a.out, a.x), stream); });
}
void run_packed(const CopyArgs& a, Stream& stream) {
  with_element(size_of(a.out.dtype), [&]<class T>() { run_transpose_packed<T>(*find_transpose(a.out, a.x), stream); });
}

constexpr std::array<TransposeRung, 4> kRungs = {{
    {"01_naive", "an element from where it is to where it goes", can_any, run_naive},
    {"02_shared_tile", "a tile in shared memory", can_any, run_shared_tile},
    {"03_padded", "a column more than the tile needs", can_any, run_padded},
    {"04_packed", "packs, turned in registers", can_packed, run_packed},
}};

}  // namespace

std::span<const TransposeRung> transpose_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
