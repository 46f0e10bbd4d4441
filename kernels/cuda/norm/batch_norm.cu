// Batch norm and its gradients: sums per channel, the statistics from them, then all elements.
#include "kernels/cuda/norm/batch_norm.cuh"

#include "kernels/cuda/base/scratch.h"
#include "kernels/cuda/reduce/dispatch.h"

#include <algorithm>
#include <initializer_list>

namespace levin::kernels::cuda {

namespace {

/// Returns cuts for about 2048 blocks if there is work for them, by the shape alone.
ChannelCuts cuts_of(const ChannelShape& shape) {
  const bool columns = shape.spatial == 1;
  const std::int64_t n = columns ? shape.batch : shape.batch * shape.spatial, least = columns ? 256 : 8192;
  const std::int64_t side_by_side = columns ? ceil_div(shape.channels, 32) : shape.channels;
  const std::int64_t wanted = std::max<std::int64_t>(1, std::min(ceil_div(n, least), 2048 / side_by_side));
  const std::int64_t each = ceil_div(n, wanted);
  return {ceil_div(n, each), each};
}

/// Returns the type of the first parameter that is present, else x's.
DType parameter_type(const TensorView& x, std::initializer_list<TensorView> parameters) {
  for (const TensorView& p : parameters) {
    if (p.pointer) return p.dtype;
  }
  return x.dtype;
}

template <class Source>
void launch_sums(const Source& source, const ChannelShape& shape, const ChannelCuts& cut, ChannelSums* sums,
                 Stream& stream) {
  const bool columns = shape.spatial == 1;
  const std::int64_t blocks = (columns ? ceil_div(shape.channels, 32) : shape.channels) * cut.cuts;
  launch(columns ? channel_column_sums<Source> : channel_sums<Source>,
         {.grid = static_cast<unsigned>(blocks), .block = kChannelThreads, .stream = stream}, source, shape, cut, sums);
}

template <class Finish>
void launch_finish(const Finish& finish, const ChannelShape& shape, std::int64_t cuts, const ChannelSums* sums,
                   Stream& stream) {
  launch(channel_finish<Finish>, {.grid = blocks_of<WarpGroup>(shape.channels, 128), .block = 128, .stream = stream},
         finish, shape.channels, cuts, sums);
}

/// Uses accesses of 16 bytes if the planes allow it.
template <class T, class Map>
void launch_map(const Map& map, const ChannelShape& shape, std::initializer_list<const void*> tensors, Stream& stream) {
  constexpr int kWidth = 16 / static_cast<int>(sizeof(T));
  bool aligned = shape.spatial % kWidth == 0;
  for (const void* p : tensors) aligned &= reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  const std::int64_t packs = aligned ? shape.numel() / kWidth : shape.numel();
  launch(aligned ? channel_map<Map, kWidth> : channel_map<Map, 1>,
         {.grid = blocks_for(packs), .block = 256, .stream = stream}, map, shape, packs);
}

template <class T, class P>
void forward(const BatchNormArgs& a, Stream& stream) {
  using C = ComputeType<T>;
  const ChannelShape shape(a.batch, a.channels, a.spatial);
  const ChannelCuts cut = a.training ? cuts_of(shape) : ChannelCuts{0, 0};
  const T* const x = elements<const T>(a.x);
  Scratch<C> numbers(stream, 3 * a.channels);
  Scratch<ChannelSums> sums(stream, a.channels * cut.cuts);
  C *const mean = numbers.get(), *const scale = mean + a.channels, *const shift = scale + a.channels;
  if (a.training) launch_sums(Moments<T>{x, shape.spatial}, shape, cut, sums.get(), stream);
  const FinishForward<T, P> finish{x,
                                   elements<const P>(a.weight),
                                   elements<const P>(a.bias),
                                   elements<P>(a.running_mean),
                                   elements<P>(a.running_var),
                                   elements<C>(a.mean),
                                   elements<C>(a.rstd),
                                   mean,
                                   scale,
                                   shift,
                                   shape.spatial,
                                   static_cast<double>(a.batch * a.spatial),
                                   a.momentum,
                                   a.eps,
                                   a.training};
  launch_finish(finish, shape, cut.cuts, sums.get(), stream);
  launch_map<T>(MapForward<T>{x, elements<T>(a.y), mean, scale, shift}, shape, {x, a.y.pointer}, stream);
}

template <class T, class P>
void backward(const BatchNormBackwardArgs& a, Stream& stream) {
  using C = ComputeType<T>;
  const ChannelShape shape(a.batch, a.channels, a.spatial);
  const ChannelCuts cut = cuts_of(shape);
  const T *const g = elements<const T>(a.g), *const x = elements<const T>(a.x);
  const C* const mean = elements<const C>(a.mean);
  Scratch<C> numbers(stream, 3 * a.channels);
  Scratch<ChannelSums> sums(stream, a.channels * cut.cuts);
  C *const scale = numbers.get(), *const g_mean = scale + a.channels, *const slope = g_mean + a.channels;
  launch_sums(GradientMoments<T>{g, x, mean}, shape, cut, sums.get(), stream);
  const FinishBackward<T, P> finish{elements<const P>(a.weight),
                                    elements<const C>(a.rstd),
                                    elements<P>(a.dweight),
                                    elements<P>(a.dbias),
                                    scale,
                                    g_mean,
                                    slope,
                                    static_cast<double>(a.batch * a.spatial)};
  launch_finish(finish, shape, cut.cuts, sums.get(), stream);
  if (!a.dx.pointer) return;
  launch_map<T>(MapBackward<T>{g, x, elements<T>(a.dx), mean, scale, g_mean, slope}, shape, {g, x, a.dx.pointer},
                stream);
}

}  // namespace

void batch_norm(const BatchNormArgs& a, Stream& stream) {
  // In evaluation the statistics are written even if x is empty.
  if (a.channels == 0 || (a.training && a.batch * a.spatial == 0)) return;
  dispatch_floats(a.x.dtype, parameter_type(a.x, {a.weight, a.bias, a.running_mean}), "batch_norm",
                  [&]<class T, class P>() { forward<T, P>(a, stream); });
}

void batch_norm_backward(const BatchNormBackwardArgs& a, Stream& stream) {
  if (a.batch * a.channels * a.spatial == 0) return;
  dispatch_floats(a.x.dtype, parameter_type(a.x, {a.weight, a.dweight, a.dbias}), "batch_norm_backward",
                  [&]<class T, class P>() { backward<T, P>(a, stream); });
}

}  // namespace levin::kernels::cuda
