// Compiled with the instrumentation that films need (levin_filmed in tests/CMakeLists.txt).
#include "film/kernels.h"

#include "kernels/cuda/reduce/01_interleaved.cuh"
#include "kernels/cuda/reduce/02_sequential.cuh"
#include "kernels/cuda/reduce/04_shuffles.cuh"
#include "kernels/cuda/transpose/01_naive.cuh"
#include "kernels/cuda/transpose/02_shared_tile.cuh"
#include "kernels/cuda/transpose/03_padded.cuh"

#include "tour_kernels.inc"  // from docs/tour/5_cuda.md

namespace levin::film {

namespace {

namespace ladder = kernels::cuda;
using Lines = ladder::ReduceLines<float, float>;
using Word = std::uint32_t;

template <class T>
T& as(void* p) {
  return *static_cast<T*>(p);
}

}  // namespace

void block_sums(void* a) { tour::block_sums<true>(as<BlockSums>(a).x, as<BlockSums>(a).sums); }
void block_sums_without_barriers(void* a) { tour::block_sums<false>(as<BlockSums>(a).x, as<BlockSums>(a).sums); }
void reduce_01(void* lines) { ladder::reduce_interleaved(ladder::SumOf{}, as<Lines>(lines)); }
void reduce_02(void* lines) { ladder::reduce_sequential(ladder::SumOf{}, as<Lines>(lines)); }
void reduce_04(void* lines) { ladder::reduce_shuffles(ladder::SumOf{}, as<Lines>(lines)); }
void transpose_01(void* p) { ladder::transpose_naive<Word>(as<ladder::TransposeProblem>(p)); }
void transpose_02(void* p) { ladder::transpose_shared_tile<Word>(as<ladder::TransposeProblem>(p)); }
void transpose_03(void* p) { ladder::transpose_padded<Word>(as<ladder::TransposeProblem>(p)); }

}  // namespace levin::film
