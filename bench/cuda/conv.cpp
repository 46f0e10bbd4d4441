// The ladder of convolutions, forward and both gradients, compared with cuDNN.

#include "bench/cuda/problem.h"
#include "kernels/cuda/conv/ladder.h"

#include <levin/autograd/ops.h>

namespace levin::bench {
namespace {

using kernels::Conv2dArgs;
using kernels::cuda::ConvRung;

/// Images (batch, in, side, side) convolved with weights (out, in, 3, 3) at padding 1.
struct ConvSize {
  int64_t batch, in, side, out;
};

const char* family_of(ConvPass pass) {
  return pass == ConvPass::forward          ? "conv"
         : pass == ConvPass::backward_input ? "conv_backward_input"
                                            : "conv_backward_weight";
}

using Kernel = void (*)(const Conv2dArgs&, Stream&);
Kernel kernel_of(const ConvRung& rung, ConvPass pass) {
  return pass == ConvPass::forward          ? rung.forward
         : pass == ConvPass::backward_input ? rung.backward_input
                                            : rung.backward_weight;
}
void shipped(ConvPass pass, const Conv2dArgs& args, Stream& stream) {
  if (pass == ConvPass::forward) return kernels::conv2d(args, stream);
  if (pass == ConvPass::backward_input) return kernels::conv2d_backward_input(args, stream);
  kernels::conv2d_backward_weight(args, stream);
}

Conv2dArgs args_of(const Tensor& x, const Tensor& weight, const Tensor& y) {
  return {.x = x.tensor_view(),
          .weight = weight.tensor_view(),
          .bias = {},
          .y = y.tensor_view(),
          .padding_h = 1,
          .padding_w = 1};
}

/// Computes the exact result. Its rows are images, or for the weight gradient the weights of one output channel each.
std::vector<Tensor> exact(ConvPass pass, const Tensor& x, const Tensor& weight, const Tensor& y, int64_t first,
                          int64_t count) {
  const auto all = [](const Tensor& t) { return rows_of(t, 0, t.size(0)); };
  const auto out = [&](const Tensor& t) {
    Shape sizes = t.sizes();
    sizes[0] = count;
    return empty(sizes, {.dtype = kFloat64});
  };
  Stream stream(kCpu);
  if (pass == ConvPass::forward) {
    const Tensor from = rows_of(x, first, count), w = all(weight), to = out(y);
    shipped(pass, args_of(from, w, to), stream);
    return {to};
  }
  if (pass == ConvPass::backward_input) {
    const Tensor from = rows_of(y, first, count), w = all(weight), to = out(x);
    shipped(pass, args_of(to, w, from), stream);
    return {to};
  }
  const Tensor from = all(x), g = all(y.narrow(1, first, count).contiguous()), to = out(weight);
  shipped(pass, args_of(from, to, g), stream);
  return {to};
}

Problem convolution(ConvPass pass, DType dtype, const ConvSize& s) {
  const Tensor x = normal({s.batch, s.in, s.side, s.side}, dtype), weight = normal({s.out, s.in, 3, 3}, dtype);
  const Tensor y = normal({s.batch, s.out, s.side, s.side}, dtype);
  const Conv2dArgs args = args_of(x, weight, y);
  Problem p{.family = family_of(pass),
            .dtype = std::string(name_of(dtype)),
            .sizes = {{"batch", s.batch}, {"in", s.in}, {"side", s.side}, {"out", s.out}, {"kernel", 3}},
            .bytes = bytes_of({x, weight, y}),
            .flops = 2.0 * static_cast<double>(y.numel()) * static_cast<double>(s.in * 9),
            .outputs = {pass == ConvPass::forward          ? y
                        : pass == ConvPass::backward_input ? x
                                                           : weight},
            .exact = [=](int64_t first, int64_t count) { return exact(pass, x, weight, y, first, count); }};
  for (const ConvRung& rung : kernels::cuda::conv_rungs()) {
    if (!rung.can(args)) continue;
    p.rungs.push_back({.name = rung.name,
                       .run = [run = kernel_of(rung, pass), args, x, weight, y](Stream& stream) { run(args, stream); },
                       .peers = {cudnn_peer(pass, args)},
                       .unit = unit_of(dtype),
                       .tolerance = tolerance_of(dtype)});
  }
  set_levels(p);
  return p;
}

}  // namespace

void add_conv(std::vector<Entry>& list, Scale scale) {
  const auto add = [&](DType dtype, const ConvSize& s) {
    for (const ConvPass pass : {ConvPass::forward, ConvPass::backward_input, ConvPass::backward_weight})
      list.push_back({family_of(pass), [=] { return convolution(pass, dtype, s); }});
  };
  if (scale == Scale::check) {
    for (const DType dtype : {kFloat32, kHalf, kBFloat16}) add(dtype, {3, 8, 6, 12});
    return;
  }
  for (const DType dtype : {kFloat32, kHalf, kBFloat16}) add(dtype, {64, 64, 56, 64});
  for (const DType dtype : {kFloat32, kHalf}) add(dtype, {64, 256, 14, 256});
}

}  // namespace levin::bench
