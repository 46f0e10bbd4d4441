// argmax and argmin.
#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/scan/arg.cuh"

#include <algorithm>

namespace levin::kernels::cuda {

namespace {

template <bool largest, class T>
void arg_reduce(const ArgReduceArgs& args, Stream& stream) {
  constexpr std::int64_t kShort = 1024, kPiece = 8192;
  constexpr int kShortThreads = 128;
  using D = DeviceType<T>;
  ArgLines<D> a{reinterpret_cast<const D*>(args.x.data<T>()),
                args.values.pointer ? reinterpret_cast<D*>(args.values.data<T>()) : nullptr,
                args.indices.data<std::int64_t>(),
                args.outer * args.inner,
                args.n,
                args.inner,
                1,
                args.n,
                nullptr};
  if (a.lines == 0) return;
  if (a.n <= kShort || (a.inner >= 32 && a.lines >= 8192)) {
    int lanes = 1;
    // Adjacent neighbouring lines are read together, one thread per line.
    while (lanes < 32 && lanes < a.n && (a.inner < 32 || a.lines * lanes < 65536)) lanes *= 2;
    const auto blocks = static_cast<unsigned>(ceil_div(a.lines * lanes, kShortThreads));
    return launch(arg_short<largest, D>, {.grid = blocks, .block = kShortThreads, .stream = stream}, a, lanes);
  }
  a.cuts = std::max<std::int64_t>(1, std::min(ceil_div(a.n, kPiece), 2048 / a.lines));
  a.each = ceil_div(a.n, a.cuts);
  a.cuts = ceil_div(a.n, a.each);
  Scratch<std::int64_t> partial(stream, a.cuts > 1 ? a.lines * a.cuts : 0);
  a.partial = partial.get();
  const auto lines = static_cast<unsigned>(a.lines);
  launch(arg_pieces<largest, D>,
         {.grid = lines * static_cast<unsigned>(a.cuts), .block = kArgThreads, .stream = stream}, a);
  if (a.cuts > 1) launch(arg_combine<largest, D>, {.grid = lines, .block = kArgThreads, .stream = stream}, a);
}

}  // namespace

void argmax(const ArgReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "argmax", [&]<class T>() { arg_reduce<true, T>(a, stream); });
}

void argmin(const ArgReduceArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "argmin", [&]<class T>() { arg_reduce<false, T>(a, stream); });
}

}  // namespace levin::kernels::cuda
