// Cumulative sums and products.
#include "kernels/cuda/scan/cumulative.cuh"

#include "kernels/cuda/base/scratch.h"

#include <algorithm>

namespace levin::kernels::cuda {

namespace {

template <class Op, class T, class Out>
void scan(const CumulativeArgs& args, Stream& stream) {
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
    return launch(scan_columns<Op, D, DOut>, {.grid = blocks, .block = kThreads, .stream = stream}, s);
  }
  if (s.n <= kShort) {
    const auto blocks = static_cast<unsigned>(ceil_div(s.lines * 32, kThreads));
    return launch(scan_short<Op, D, DOut>, {.grid = blocks, .block = kThreads, .stream = stream}, s);
  }
  const std::int64_t wanted = std::max<std::int64_t>(1, std::min(ceil_div(s.n, 4 * kScanTile), 2048 / s.lines));
  s.each = ceil_div(ceil_div(s.n, wanted), kScanTile) * kScanTile;
  s.cuts = ceil_div(s.n, s.each);
  Scratch<Running<D>> totals(stream, s.cuts > 1 ? s.lines * (s.cuts + 1) : 0);
  s.totals = totals.get();
  const LaunchConfig pieces{.grid = static_cast<unsigned>(s.lines * s.cuts), .block = kScanThreads, .stream = stream};
  if (s.cuts > 1) {
    launch(scan_piece_totals<Op, D, DOut>, pieces, s);
    launch(scan_totals<Op, Running<D>>,
           {.grid = static_cast<unsigned>(s.lines), .block = kScanThreads, .stream = stream}, s.totals, s.cuts + 1);
  }
  launch(scan_pieces<Op, D, DOut>, pieces, s);
}

template <class Op>
void scan_any(const char* op, const CumulativeArgs& a, Stream& stream) {
  dispatch_all(a.x.dtype, op, [&]<class T>() {
    if constexpr (kIsFloating<DeviceType<T>>) {
      scan<Op, T, T>(a, stream);
    } else {
      scan<Op, T, std::int64_t>(a, stream);
    }
  });
}

}  // namespace

void cumsum(const CumulativeArgs& a, Stream& stream) { scan_any<reduction::Sum>("cumsum", a, stream); }
void cumprod(const CumulativeArgs& a, Stream& stream) { scan_any<reduction::Prod>("cumprod", a, stream); }

}  // namespace levin::kernels::cuda
