// The memory-bound ladders: sum, softmax and layer norm of rows, and transposing copies.

#include "bench/cuda/problem.h"
#include "kernels/cuda/norm/ladder.h"
#include "kernels/cuda/reduce/ladder.h"
#include "kernels/cuda/softmax/ladder.h"
#include "kernels/cuda/transpose/ladder.h"

#include <levin/autograd/ops.h>

namespace levin::bench {
namespace {

/// Returns the rungs of a ladder that support these arguments. `keep` owns the tensors that the arguments point to.
template <class RungType, class Args>
std::vector<Rung> rungs_of(std::span<const RungType> ladder, const Args& args, const std::vector<Tensor>& keep,
                           const std::vector<Peer>& peers, double tolerance) {
  std::vector<Rung> list;
  for (const RungType& rung : ladder) {
    if (!rung.can(args)) continue;
    list.push_back({.name = rung.name,
                    .run = [run = rung.run, args, keep](Stream& stream) { run(args, stream); },
                    .peers = peers,
                    .tolerance = tolerance});
  }
  return list;
}

Problem reduce(int64_t rows, int64_t columns) {
  const Tensor x = normal({rows, columns}, kFloat32), out = on_device({rows, 1}, kFloat32);
  Problem p{
      .family = "reduce",
      .dtype = "float32",
      .sizes = {{"rows", rows}, {"columns", columns}},
      .bytes = bytes_of({x, out}),
      .flops = static_cast<double>(x.numel()),
      .outputs = {out},
      .exact = [x](int64_t first, int64_t count) { return std::vector{rows_of(x, first, count).sum({1}, true)}; }};
  std::vector<Peer> peers{memcpy_peer(p.bytes)};
  if (rows == 1) peers.push_back(cub_sum_peer(out, x));
  // The sum of n numbers of both signs is only about sqrt(n).
  p.rungs = rungs_of(kernels::cuda::reduce_rungs(), kernels::SumArgs{out.tensor_view(), x.tensor_view()}, {x, out},
                     peers, 1e-4);
  set_levels(p);
  return p;
}

Problem softmax_rows(int64_t rows, int64_t columns, DType dtype) {
  const Tensor x = normal({rows, columns}, dtype), out = empty_like(x);
  Problem p{.family = "softmax",
            .dtype = std::string(name_of(dtype)),
            .sizes = {{"rows", rows}, {"columns", columns}},
            .bytes = bytes_of({x, out}),
            .flops = 25.0 * static_cast<double>(x.numel()),
            .outputs = {out},
            .exact = [x](int64_t first, int64_t count) { return std::vector{softmax(rows_of(x, first, count), 1)}; }};
  const kernels::SoftmaxArgs args{out.tensor_view(), x.tensor_view(), rows, columns, 1};
  p.rungs = rungs_of(kernels::cuda::softmax_rungs(), args, {x, out}, {memcpy_peer(p.bytes)}, tolerance_of(dtype));
  set_levels(p);
  return p;
}

Problem layer_norm_rows(int64_t rows, int64_t columns) {
  const Tensor x = normal({rows, columns}, kFloat32), y = empty_like(x);
  const Tensor weight = normal({columns}, kFloat32), bias = normal({columns}, kFloat32);
  const Tensor mean = on_device({rows}, kFloat32), rstd = on_device({rows}, kFloat32);
  Problem p{.family = "layer_norm",
            .dtype = "float32",
            .sizes = {{"rows", rows}, {"columns", columns}},
            .bytes = bytes_of({x, y, weight, bias, mean, rstd}),
            .flops = 8.0 * static_cast<double>(x.numel()),
            .outputs = {y},
            .exact = [=](int64_t first, int64_t count) {
              return std::vector{layer_norm(rows_of(x, first, count), {columns}, rows_of(weight, 0, columns),
                                            rows_of(bias, 0, columns))};
            }};
  const kernels::LayerNormArgs args{.y = y.tensor_view(),
                                    .x = x.tensor_view(),
                                    .weight = weight.tensor_view(),
                                    .bias = bias.tensor_view(),
                                    .mean = mean.tensor_view(),
                                    .rstd = rstd.tensor_view(),
                                    .rows = rows,
                                    .columns = columns};
  p.rungs = rungs_of(kernels::cuda::layer_norm_rungs(), args, {x, y, weight, bias, mean, rstd}, {memcpy_peer(p.bytes)},
                     tolerance_of(kFloat32));
  set_levels(p);
  return p;
}

Problem transpose(int64_t rows, int64_t columns, DType dtype) {
  const Tensor x = normal({columns, rows}, dtype), out = on_device({rows, columns}, dtype);
  Problem p{.family = "transpose",
            .dtype = std::string(name_of(dtype)),
            .sizes = {{"rows", rows}, {"columns", columns}},
            .bytes = bytes_of({x, out}),
            .outputs = {out},
            .exact = [=](int64_t first, int64_t count) {
              return std::vector{x.narrow(1, first, count).contiguous().to(kCpu).to(kFloat64).t().contiguous()};
            }};
  const kernels::CopyArgs args{out.tensor_view(), x.t().tensor_view()};
  p.rungs = rungs_of(kernels::cuda::transpose_rungs(), args, {x, out}, {memcpy_peer(p.bytes)}, 0);
  set_levels(p);
  return p;
}

}  // namespace

void add_lines(std::vector<Entry>& list, Scale scale) {
  const bool full = scale == Scale::full;
  const auto add = [&](const char* family, std::function<Problem()> make) {
    list.push_back({family, std::move(make)});
  };
  add("reduce", [=] { return full ? reduce(1, 1 << 27) : reduce(1, 3000); });
  add("reduce", [=] { return full ? reduce(16384, 8192) : reduce(5, 700); });
  for (const DType dtype : {kFloat32, kHalf}) {
    add("softmax", [=] { return full ? softmax_rows(16384, 8192, dtype) : softmax_rows(5, 1032, dtype); });
    add("softmax", [=] { return full ? softmax_rows(262144, 512, dtype) : softmax_rows(9, 40, dtype); });
    add("transpose", [=] { return full ? transpose(16384, 8192, dtype) : transpose(40, 72, dtype); });
  }
  add("layer_norm", [=] { return full ? layer_norm_rows(16384, 8192) : layer_norm_rows(5, 1032); });
  add("layer_norm", [=] { return full ? layer_norm_rows(131072, 1024) : layer_norm_rows(9, 40); });
}

}  // namespace levin::bench
