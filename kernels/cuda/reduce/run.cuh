#pragma once
// The launcher of all reductions: axes are sorted and merged, a kernel is chosen, and long lines are cut into pieces
// whose accumulators a second launch reduces. All of it depends on shapes and strides alone, so the bits are the same
// on every device.

#include "kernels/cuda/base/launch.h"
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/reduce/05_vectors.cuh"
#include "kernels/cuda/reduce/shapes.cuh"

namespace levin::kernels::cuda {

/// Returns the problem of Op's reduction of x to out, before it is split. T is the type of x.
template <class Op, class T>
ReduceLines<DeviceType<T>, AccumulatorOf<Op, DeviceType<T>>> lines_of(const TensorView& out, const TensorView& x,
                                                                      const ReduceFinish& finish) {
  ReduceLines<DeviceType<T>, AccumulatorOf<Op, DeviceType<T>>> lines;
  lines.x = reinterpret_cast<const DeviceType<T>*>(x.data<T>());
  lines.out = out.data<void>();
  lines.out_dtype = out.dtype;
  lines.finish = finish;
  for (int d = 0; d < x.dim(); ++d) {
    if (x.size(d) == 1) continue;
    ReduceAxes& list = out.size(d) == 1 ? lines.reduced : lines.kept;
    list.axis[list.count++] = {x.size(d), x.stride(d), out.size(d) == 1 ? 0 : out.stride(d)};
  }
  lines.kept.simplify();
  lines.reduced.simplify();
  lines.outputs = lines.kept.numel();
  lines.n = lines.reduced.numel();
  return lines;
}

/// Returns the accumulators of cut lines, which lie in `partial`, as lines to be reduced.
template <class T, class Acc>
ReduceLines<Acc, Acc> pieces_of(const ReduceLines<T, Acc>& lines, const Acc* partial) {
  ReduceLines<Acc, Acc> pieces;
  pieces.x = partial;
  pieces.kept = lines.kept;
  std::int64_t step = lines.cuts;
  for (int i = pieces.kept.count - 1; i >= 0; --i) {
    pieces.kept.axis[i].x = step;
    step *= pieces.kept.axis[i].size;
  }
  pieces.reduced.count = 1;
  pieces.reduced.axis[0] = {lines.cuts, 1, 0};
  pieces.outputs = lines.outputs;
  pieces.n = lines.cuts;
  pieces.out = lines.out;
  pieces.out_dtype = lines.out_dtype;
  pieces.finish = lines.finish;
  return pieces;
}

/// Returns the number of elements of a piece: a multiple of `least`, such that about 2048 blocks work on `lines` of
/// them.
inline std::int64_t piece_of(std::int64_t n, std::int64_t lines, std::int64_t least) {
  const std::int64_t cuts = std::max<std::int64_t>(1, std::min(ceil_div(n, least), 2048 / lines));
  return std::max<std::int64_t>(1, ceil_div(ceil_div(n, cuts), least)) * least;
}

template <class Op, class T, class Acc>
void launch_short(const Op& op, const ReduceLines<T, Acc>& lines, int lanes, Stream& stream) {
  constexpr int kThreads = 128;
  launch(
      reduce_short<Op, T, Acc>,
      {.grid = static_cast<unsigned>(ceil_div(lines.outputs * lanes, kThreads)), .block = kThreads, .stream = stream},
      op, lines, lanes);
}

/// Launches `blocks` blocks of kernel(op, lines); if lines are cut, a second launch combines their pieces.
template <class Op, class T, class Acc>
void launch_cut(void (*kernel)(Op, ReduceLines<T, Acc>), std::int64_t blocks, const Op& op, ReduceLines<T, Acc> lines,
                Stream& stream) {
  const LaunchConfig config{.grid = static_cast<unsigned>(blocks), .block = kReduceThreads, .stream = stream};
  if (lines.cuts == 1) return launch(kernel, config, op, lines);
  Scratch<Acc> partial(stream, lines.outputs * lines.cuts);
  lines.partial = partial.get();
  launch(kernel, config, op, lines);
  const OfPieces<Op> again{op};
  const ReduceLines<Acc, Acc> pieces = pieces_of(lines, partial.get());
  if (pieces.n <= 256) return launch_short(again, pieces, 32, stream);
  launch(reduce_vectors<OfPieces<Op>, Acc, Acc>,
         {.grid = static_cast<unsigned>(pieces.outputs), .block = kReduceThreads, .stream = stream}, again, pieces);
}

template <class Op, class T, class Acc>
void reduce_lines(const Op& op, ReduceLines<T, Acc> lines, Stream& stream) {
  constexpr std::int64_t kShort = 1024, kPiece = 16384;
  if (lines.n <= kShort) {
    int lanes = 1;
    while (lanes < 32 && lanes < lines.n) lanes *= 2;
    return launch_short(op, lines, lanes, stream);
  }
  lines.cut(piece_of(lines.n, lines.outputs, kPiece));
  auto kernel = lines.contiguous() ? reduce_vectors<Op, T, Acc> : reduce_scattered<Op, T, Acc>;
  if constexpr (kIsFloating<T>) {
    if (!lines.contiguous() && ReduceWalk::supports(lines.reduced)) {
      lines.walk = ReduceWalk(lines.reduced);
      lines.packed = lines.packs(kRunWidth<T>, true);
      kernel = reduce_runs<Op, T, Acc>;
    }
  }
  launch_cut(kernel, lines.outputs * lines.cuts, op, lines, stream);
}

/// For lines whose elements lie further apart than neighbouring outputs.
template <class Op, class T, class Acc>
void reduce_by_columns(const Op& op, ReduceLines<T, Acc> lines, Stream& stream) {
  constexpr std::int64_t kShort = 32, kPiece = 256;
  if (lines.n <= kShort) return launch_short(op, lines, 1, stream);
  const std::int64_t tiles = ceil_div(lines.outputs, 32);
  lines.cut(piece_of(lines.n, tiles, kPiece));
  if constexpr (kIsFloating<T>) {
    if (ReduceWalk::supports(lines.reduced) && lines.packs(kColumnWidth<T>, false)) {
      lines.walk = ReduceWalk(lines.reduced);
      constexpr std::int64_t kColumns = kReduceThreads / kColumnSums * kColumnWidth<T>;
      const std::int64_t blocks = ceil_div(lines.outputs, kColumns) * lines.cuts;
      return launch_cut(reduce_packed_columns<Op, T, Acc>, blocks, op, lines, stream);
    }
  }
  launch_cut(reduce_columns<Op, T, Acc>, tiles * lines.cuts, op, lines, stream);
}

/// out = reduction of x, whose elements are of type T, over the axes along which out has size 1.
template <class T, class Op>
void reduce(const Op& op, const TensorView& out, const TensorView& x, const ReduceFinish& finish, Stream& stream) {
  constexpr std::int64_t kFewColumns = 16;
  const auto lines = lines_of<Op, T>(out, x, finish);
  if (lines.outputs == 0) return;
  const ReduceAxes &kept = lines.kept, &reduced = lines.reduced;
  const bool by_columns = kept.count > 0 && reduced.count > 0 && lines.outputs >= kFewColumns &&
                          kept.axis[kept.count - 1].x < reduced.axis[reduced.count - 1].x;
  by_columns ? reduce_by_columns(op, lines, stream) : reduce_lines(op, lines, stream);
}

}  // namespace levin::kernels::cuda
