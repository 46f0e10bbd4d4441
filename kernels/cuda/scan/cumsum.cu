// Cumulative sums.
#include "kernels/cuda/scan/cumsum.cuh"

#include "kernels/cuda/base/scratch.h"

#include <algorithm>

namespace levin::kernels::cuda {

namespace {

template <class T, class Out>
void scan(const CumsumArgs& args, Stream& stream) {
  constexpr std::int64_t kShort = 256, kManyLines = 4096;
  constexpr int kThreads = 128;
  using D = DeviceType<T>;
  using DOut = DeviceType<Out>;
  ScanLines<D, DOut> s{reinterpret_cast<const D*>(args.x.data<T>()),
                       reinterpret_cast<DOut*>(args.out.data<Out>()),
                       args.outer * args.inner,
                       args.n,
                       args.inner,
                       1,
                       args.n,
                       args.reverse,
                       nullptr};
  if (s.lines * s.n == 0) return;
  if (s.inner > 1 && (s.n <= kShort || (s.inner >= 32 && s.lines >= kManyLines))) {
    const auto blocks = static_cast<unsigned>(ceil_div(s.lines, kThreads));
    return launch(scan_columns<D, DOut>, {.grid = blocks, .block = kThreads, .stream = stream}, s);
  }
  if (s.n <= kShort) {
    const auto blocks = static_cast<unsigned>(ceil_div(s.lines * 32, kThreads));
    return launch(scan_short<D, DOut>, {.grid = blocks, .block = kThreads, .stream = stream}, s);
  }
  const std::int64_t wanted = std::max<std::int64_t>(1, std::min(ceil_div(s.n, 4 * kScanTile), 2048 / s.lines));
  s.each = ceil_div(ceil_div(s.n, wanted), kScanTile) * kScanTile;
  s.cuts = ceil_div(s.n, s.each);
  Scratch<RunningSum<D>> sums(stream, s.cuts > 1 ? s.lines * (s.cuts + 1) : 0);
  s.sums = sums.get();
  const LaunchConfig pieces{.grid = static_cast<unsigned>(s.lines * s.cuts), .block = kScanThreads, .stream = stream};
  if (s.cuts > 1) {
    launch(scan_piece_sums<D, DOut>, pieces, s);
    launch(scan_sums<RunningSum<D>>, {.grid = static_cast<unsigned>(s.lines), .block = kScanThreads, .stream = stream},
           s.sums, s.cuts + 1);
  }
  launch(scan_pieces<D, DOut>, pieces, s);
}

}  // namespace

void cumsum(const CumsumArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, "cumsum", [&]<class T>() {
    if constexpr (kIsFloating<DeviceType<T>>) {
      scan<T, T>(a, stream);
    } else {
      scan<T, std::int64_t>(a, stream);
    }
  });
}

}  // namespace levin::kernels::cuda
