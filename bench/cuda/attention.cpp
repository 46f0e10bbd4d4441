// The ladders of attention, forward and backward. PyTorch's rows (tools/silicon/peer_torch.py) include cuDNN's
// attention.

#include "bench/cuda/problem.h"
#include "kernels/cuda/attention/ladder.h"

#include <levin/autograd/ops.h>

#include <cmath>

namespace levin::bench {
namespace {

using kernels::AttentionArgs;
using kernels::AttentionBackwardArgs;

struct AttentionSize {
  int64_t heads, length, width;
  bool causal;
};

/// q, k, v, g, out (heads, length, width) and lse (heads, length).
struct Tensors {
  Tensor q, k, v, g, out, lse;

  AttentionArgs forward(const AttentionSize& s) const {
    return {.out = out.tensor_view(),
            .lse = lse.tensor_view(),
            .q = q.tensor_view(),
            .k = k.tensor_view(),
            .v = v.tensor_view(),
            .scale = 1 / std::sqrt(static_cast<double>(s.width)),
            .causal = s.causal};
  }
  AttentionBackwardArgs backward(const AttentionSize& s, const Tensor& dq, const Tensor& dk, const Tensor& dv) const {
    return {.dq = dq.tensor_view(),
            .dk = dk.tensor_view(),
            .dv = dv.tensor_view(),
            .g = g.tensor_view(),
            .out = out.tensor_view(),
            .lse = lse.tensor_view(),
            .q = q.tensor_view(),
            .k = k.tensor_view(),
            .v = v.tensor_view(),
            .scale = 1 / std::sqrt(static_cast<double>(s.width)),
            .causal = s.causal};
  }
};

Tensors make_tensors(const AttentionSize& s, DType dtype) {
  const Shape sizes{s.heads, s.length, s.width};
  return {.q = normal(sizes, dtype),
          .k = normal(sizes, dtype),
          .v = normal(sizes, dtype),
          .g = normal(sizes, dtype),
          .out = on_device(sizes, dtype),
          .lse = on_device({s.heads, s.length}, kFloat32)};
}

/// Copies some heads to the CPU and computes the forward pass there.
Tensors exact_forward(const Tensors& t, const AttentionSize& s, int64_t first, int64_t count) {
  const auto rows = [&](const Tensor& x) { return rows_of(x, first, count); };
  Tensors e{.q = rows(t.q),
            .k = rows(t.k),
            .v = rows(t.v),
            .g = rows(t.g),
            .out = empty({count, s.length, s.width}, {.dtype = kFloat64}),
            .lse = empty({count, s.length}, {.dtype = kFloat64})};
  Stream stream(kCpu);
  kernels::attention(e.forward(s), stream);
  return e;
}

Problem problem_of(const char* family, const AttentionSize& s, DType dtype, double flops_a_pair) {
  const double pairs = static_cast<double>(s.heads * s.length * s.length) * (s.causal ? 0.5 : 1.0);
  return {.family = family,
          .dtype = std::string(name_of(dtype)),
          .sizes = {{"heads", s.heads}, {"length", s.length}, {"width", s.width}, {"causal", s.causal}},
          .flops = flops_a_pair * pairs * static_cast<double>(s.width)};
}

template <class RungType, class Args>
void add_rungs(Problem& p, std::span<const RungType> rungs, const Args& args, const Tensors& keep, DType dtype) {
  const Peer cudnn{.name = "cudnn",
                   .missing = "cuDNN's classic interface has no attention; PyTorch's row on cuDNN stands for it."};
  for (const RungType& rung : rungs) {
    if (!rung.can(args)) continue;
    p.rungs.push_back({.name = rung.name,
                       .run = [run = rung.run, args, keep](Stream& stream) { run(args, stream); },
                       .peers = {cudnn},
                       .unit = unit_of(dtype),
                       .tolerance = 2 * tolerance_of(dtype)});  // weights and sums are rounded
  }
  set_levels(p);
}

Problem forward(const AttentionSize& s, DType dtype) {
  const Tensors t = make_tensors(s, dtype);
  Problem p = problem_of("attention", s, dtype, 4);
  p.bytes = bytes_of({t.q, t.k, t.v, t.out, t.lse});
  p.outputs = {t.out, t.lse};
  p.exact = [=](int64_t first, int64_t count) {
    const Tensors e = exact_forward(t, s, first, count);
    return std::vector{e.out, e.lse};
  };
  add_rungs(p, kernels::cuda::attention_rungs(), t.forward(s), t, dtype);
  return p;
}

Problem backward(const AttentionSize& s, DType dtype) {
  const Tensors t = make_tensors(s, dtype);
  Stream stream = current_stream(cuda(0));
  kernels::attention(t.forward(s), stream);
  const Tensor dq = empty_like(t.q), dk = empty_like(t.k), dv = empty_like(t.v);
  Problem p = problem_of("attention_backward", s, dtype, 10);
  p.bytes = bytes_of({t.q, t.k, t.v, t.g, t.out, t.lse, dq, dk, dv});
  p.outputs = {dq, dk, dv};
  p.exact = [=](int64_t first, int64_t count) {
    const Tensors e = exact_forward(t, s, first, count);
    const Tensor a = empty_like(e.q), b = empty_like(e.k), c = empty_like(e.v);
    Stream host(kCpu);
    kernels::attention_backward(e.backward(s, a, b, c), host);
    return std::vector{a, b, c};
  };
  add_rungs(p, kernels::cuda::attention_backward_rungs(), t.backward(s, dq, dk, dv), t, dtype);
  return p;
}

}  // namespace

void add_attention(std::vector<Entry>& list, Scale scale) {
  const auto add = [&](DType dtype, const AttentionSize& s) {
    list.push_back({"attention", [=] { return forward(s, dtype); }});
    list.push_back({"attention_backward", [=] { return backward(s, dtype); }});
  };
  if (scale == Scale::check) {
    for (const DType dtype : {kFloat32, kHalf, kBFloat16}) add(dtype, {2, 40, 16, false});
    add(kHalf, {2, 40, 16, true});
    return;
  }
  add(kHalf, {64, 2048, 64, false});
  add(kHalf, {64, 2048, 128, false});
  add(kHalf, {64, 2048, 128, true});
  add(kBFloat16, {64, 2048, 128, false});
  add(kFloat32, {64, 1024, 64, false});
}

}  // namespace levin::bench
