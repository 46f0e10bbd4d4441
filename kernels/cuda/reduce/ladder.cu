// Each rung as a complete sum.
#include "kernels/cuda/reduce/ladder.h"

#include "kernels/cuda/reduce/01_interleaved.cuh"
#include "kernels/cuda/reduce/02_sequential.cuh"
#include "kernels/cuda/reduce/03_several_elements.cuh"
#include "kernels/cuda/reduce/run.cuh"

namespace levin::kernels::cuda {

namespace {

using FloatKernel = void (*)(SumOf, ReduceLines<float, double>);
using PiecesKernel = void (*)(OfPieces<SumOf>, ReduceLines<double, double>);

bool can_sum_lines(const SumArgs& a) {
  if (a.x.dtype != DType::f32) return false;
  return lines_of<SumOf, float>(a.out, a.x, {}).contiguous();
}

/// Adds up pieces of `most` elements, then their sums in pieces of the same length, until one per line is left.
void add_pieces(PiecesKernel kernel, ReduceLines<double, double> pieces, std::int64_t most, Stream& stream) {
  pieces.cut(most);
  const LaunchConfig config{
      .grid = static_cast<unsigned>(pieces.outputs * pieces.cuts), .block = kReduceThreads, .stream = stream};
  const OfPieces<SumOf> op{};
  if (pieces.cuts == 1) return launch(kernel, config, op, pieces);
  Scratch<double> partial(stream, pieces.outputs * pieces.cuts);
  pieces.partial = partial.get();
  launch(kernel, config, op, pieces);
  add_pieces(kernel, pieces_of(pieces, partial.get()), most, stream);
}

void add_lines(FloatKernel kernel, PiecesKernel again, std::int64_t most, const SumArgs& a, Stream& stream) {
  ReduceFinish finish;
  if (a.divisor != 1.0) finish = {ReduceFinish::Kind::divide, a.divisor};
  ReduceLines<float, double> lines = lines_of<SumOf, float>(a.out, a.x, finish);
  if (lines.outputs == 0) return;
  lines.cut(most > 0 ? most : piece_of(lines.n, lines.outputs, 16384));
  const LaunchConfig config{
      .grid = static_cast<unsigned>(lines.outputs * lines.cuts), .block = kReduceThreads, .stream = stream};
  if (lines.cuts == 1) return launch(kernel, config, SumOf{}, lines);
  Scratch<double> partial(stream, lines.outputs * lines.cuts);
  lines.partial = partial.get();
  launch(kernel, config, SumOf{}, lines);
  add_pieces(again, pieces_of(lines, partial.get()), most > 0 ? most : lines.cuts, stream);
}

using Again = OfPieces<SumOf>;

void run_interleaved(const SumArgs& a, Stream& stream) {
  add_lines(reduce_interleaved<SumOf, float, double>, reduce_interleaved<Again, double, double>, kReduceThreads, a,
            stream);
}
void run_sequential(const SumArgs& a, Stream& stream) {
  add_lines(reduce_sequential<SumOf, float, double>, reduce_sequential<Again, double, double>, kReduceThreads, a,
            stream);
}
void run_several(const SumArgs& a, Stream& stream) {
  add_lines(reduce_several<SumOf, float, double>, reduce_several<Again, double, double>, 0, a, stream);
}
void run_shuffles(const SumArgs& a, Stream& stream) {
  add_lines(reduce_shuffles<SumOf, float, double>, reduce_shuffles<Again, double, double>, 0, a, stream);
}
void run_vectors(const SumArgs& a, Stream& stream) {
  add_lines(reduce_vectors<SumOf, float, double>, reduce_vectors<Again, double, double>, 0, a, stream);
}

constexpr ReduceRung kRungs[] = {
    {"01_interleaved", "a tree in shared memory", can_sum_lines, run_interleaved},
    {"02_sequential", "neighbouring threads work", can_sum_lines, run_sequential},
    {"03_several_elements", "thousands of elements for one tree", can_sum_lines, run_several},
    {"04_shuffles", "lanes hand each other registers", can_sum_lines, run_shuffles},
    {"05_vectors", "16 bytes a load, four in flight", can_sum_lines, run_vectors},
};

}  // namespace

std::span<const ReduceRung> reduce_rungs() { return kRungs; }

}  // namespace levin::kernels::cuda
