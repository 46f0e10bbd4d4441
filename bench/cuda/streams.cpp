// Memory-bound operations without a ladder: elementwise, AdamW, prefix sums, sorting, pooling, and the sums of columns
// and channels, which are gradients of biases.

#include "bench/cuda/problem.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/elementwise.h>
#include <levin/kernels/optim.h>
#include <levin/kernels/pool.h>
#include <levin/kernels/reduce.h>
#include <levin/kernels/scan.h>

namespace levin::bench {
namespace {

Problem problem_of(const char* family, DType dtype, int64_t n, double bytes, const std::vector<Tensor>& outputs) {
  return {
      .family = family, .dtype = std::string(name_of(dtype)), .sizes = {{"n", n}}, .bytes = bytes, .outputs = outputs};
}

Problem add(int64_t n, DType dtype) {
  const Tensor a = normal({n}, dtype), b = normal({n}, dtype), out = empty_like(a);
  const kernels::BinaryArgs args{
      .out = out.tensor_view(), .a = a.tensor_view(), .b = b.tensor_view(), .compute = dtype};
  Problem p = problem_of("add", dtype, n, bytes_of({a, b, out}), {out});
  p.flops = static_cast<double>(n);
  p.exact = [=](int64_t first, int64_t count) {
    return std::vector{rows_of(a, first, count) + rows_of(b, first, count)};
  };
  p.rungs = {{.name = "shipped",
              .run = [args, a, b, out](Stream& stream) { kernels::add(args, stream); },
              .peers = {memcpy_peer(p.bytes)},
              .tolerance = tolerance_of(dtype)}};
  return p;
}

Problem gelu_of(int64_t n, DType dtype) {
  const Tensor x = normal({n}, dtype), out = empty_like(x);
  const kernels::UnaryArgs args{.out = out.tensor_view(), .x = x.tensor_view()};
  Problem p = problem_of("gelu", dtype, n, bytes_of({x, out}), {out});
  p.flops = 20.0 * static_cast<double>(n);
  p.exact = [=](int64_t first, int64_t count) { return std::vector{gelu(rows_of(x, first, count))}; };
  p.rungs = {{.name = "shipped",
              .run = [args, x, out](Stream& stream) { kernels::gelu(args, stream); },
              .peers = {memcpy_peer(p.bytes)},
              .tolerance = tolerance_of(dtype)}};
  return p;
}

/// Parameters of equal size with `n` numbers in total, and their grad, exp_avg and exp_avg_sq.
struct AdamState {
  std::vector<Tensor> values[4];
  std::vector<kernels::OptimTensor> tensors;

  kernels::AdamStepArgs args() const {
    return {.tensors = tensors, .lr = 1e-3, .weight_decay = 1e-2, .decoupled = true};
  }
  void fill(const std::vector<Tensor>& param, const std::vector<Tensor>& grad) {
    for (std::size_t i = 0; i < param.size(); ++i) {
      const Tensor m = zeros_like(param[i]), v = zeros_like(param[i]);
      values[0].push_back(param[i]), values[1].push_back(grad[i]), values[2].push_back(m), values[3].push_back(v);
      tensors.push_back({.param = param[i].raw_data(),
                         .grad = grad[i].raw_data(),
                         .first = m.raw_data(),
                         .second = v.raw_data(),
                         .numel = param[i].numel(),
                         .dtype = param[i].dtype(),
                         .step = 1});
    }
  }
};

Problem adamw(int64_t n, int64_t count) {
  std::vector<Tensor> param, grad, start;
  for (int64_t i = 0; i < count; ++i) {
    param.push_back(normal({n / count}, kFloat32)), grad.push_back(normal({n / count}, kFloat32));
    start.push_back(param.back().clone());
  }
  const auto state = std::make_shared<AdamState>();
  state->fill(param, grad);
  Problem p = problem_of("adamw", kFloat32, n, 28.0 * static_cast<double>(n), param);
  p.sizes.emplace_back("tensors", count);
  p.flops = 12.0 * static_cast<double>(n);
  p.reset = [=] {
    for (std::size_t i = 0; i < param.size(); ++i) {
      param[i].copy_(start[i]);
      state->values[2][i].zero_(), state->values[3][i].zero_();
    }
  };
  p.exact = [=](int64_t first, int64_t rows) {
    AdamState e;
    std::vector<Tensor> from, g;
    for (std::size_t i = 0; i < start.size(); ++i)
      from.push_back(rows_of(start[i], first, rows)), g.push_back(rows_of(grad[i], first, rows));
    e.fill(from, g);
    Stream stream(kCpu);
    kernels::adam_step(e.args(), stream);
    return from;
  };
  p.rungs = {{.name = "fused",
              .run = [state](Stream& stream) { kernels::adam_step(state->args(), stream); },
              .peers = {memcpy_peer(p.bytes)},
              .tolerance = tolerance_of(kFloat32)}};
  return p;
}

Problem scan(int64_t n) {
  const Tensor x = normal({n}, kFloat32), out = empty_like(x);
  const kernels::CumulativeArgs args{out.tensor_view(), x.tensor_view(), 1, n, 1, false};
  Problem p = problem_of("scan", kFloat32, n, bytes_of({x, out}), {out});
  p.flops = static_cast<double>(n);
  p.exact = [=](int64_t first, int64_t count) {
    return std::vector{cumsum(rows_of(x, 0, first + count), 0).narrow(0, first, count).contiguous()};
  };
  p.rungs = {{.name = "shipped",
              .run = [args, x, out](Stream& stream) { kernels::cumsum(args, stream); },
              .peers = {cub_scan_peer(out, x), memcpy_peer(p.bytes)},
              .tolerance = tolerance_of(kFloat32)}};
  return p;
}

Problem radix_sort(int64_t n) {
  const Tensor x = normal({n}, kFloat32), values = empty_like(x), indices = on_device({n}, kInt64);
  const kernels::SortArgs args{values.tensor_view(), indices.tensor_view(), x.tensor_view(), 1, n, 1, n, false};
  Problem p = problem_of("sort", kFloat32, n, bytes_of({x, values, indices}), {values, indices});
  p.exact = [=](int64_t first, int64_t count) {
    const Tensor from = rows_of(x, 0, n), to = empty_like(from), places = empty({n}, {.dtype = kInt64});
    Stream stream(kCpu);
    kernels::sort({to.tensor_view(), places.tensor_view(), from.tensor_view(), 1, n, 1, n, false}, stream);
    return std::vector{rows_of(to, first, count), rows_of(places, first, count)};
  };
  p.rungs = {{.name = "radix",
              .run = [args, x, values, indices](Stream& stream) { kernels::sort(args, stream); },
              .peers = {cub_sort_peer(values, indices, x), memcpy_peer(p.bytes)},
              .tolerance = 0}};
  return p;
}

struct Images {
  int64_t batch, channels, side;

  Shape sizes(int64_t pixels) const { return {batch * channels, pixels, pixels}; }
  std::vector<std::pair<std::string, int64_t>> names() const {
    return {{"batch", batch}, {"channels", channels}, {"side", side}};
  }
};

/// Max pooling of 2 x 2 pixels, or its gradient.
Problem pool(const Images& images, DType dtype, bool backward) {
  kernels::PoolGeometry g{.planes = images.batch * images.channels,
                          .h = images.side,
                          .w = images.side,
                          .oh = images.side / 2,
                          .ow = images.side / 2,
                          .kernel_h = 2,
                          .kernel_w = 2,
                          .stride_h = 2,
                          .stride_w = 2};
  const Tensor x = normal(images.sizes(g.h), dtype), y = on_device(images.sizes(g.oh), dtype);
  const Tensor indices = on_device(y.sizes(), g.index_type());
  const Tensor dx = backward ? empty_like(x) : Tensor(), dy = backward ? normal(y.sizes(), dtype) : Tensor();
  Problem p{.family = backward ? "pool_backward" : "pool",
            .dtype = std::string(name_of(dtype)),
            .sizes = images.names(),
            .bytes = backward ? bytes_of({dx, dy, indices}) : bytes_of({x, y, indices}),
            .outputs = backward ? std::vector{dx} : std::vector{y, indices}};
  const kernels::MaxPool2dArgs forward{y.tensor_view(), indices.tensor_view(), x.tensor_view(), g};
  Stream now = current_stream(x.device());
  kernels::max_pool2d(forward, now);
  p.exact = [=](int64_t first, int64_t count) mutable {
    g.planes = count;
    const Tensor from = rows_of(x, first, count), largest = empty({count, g.oh, g.ow}, {.dtype = kFloat64});
    const Tensor codes = empty(largest.sizes(), {.dtype = g.index_type()});
    Stream stream(kCpu);
    kernels::max_pool2d({largest.tensor_view(), codes.tensor_view(), from.tensor_view(), g}, stream);
    if (!backward) return std::vector{largest, codes.to(kFloat64)};
    const Tensor gradient = rows_of(dy, first, count), result = empty_like(from);
    kernels::max_pool2d_backward({result.tensor_view(), gradient.tensor_view(), codes.tensor_view(), g}, stream);
    return std::vector{result};
  };
  Run run = [forward, x, y, indices](Stream& stream) { kernels::max_pool2d(forward, stream); };
  if (backward) {
    const kernels::MaxPool2dBackwardArgs args{dx.tensor_view(), dy.tensor_view(), indices.tensor_view(), g};
    run = [args, dx, dy, indices](Stream& stream) { kernels::max_pool2d_backward(args, stream); };
  }
  p.rungs = {{.name = "shipped", .run = run, .peers = {memcpy_peer(p.bytes)}, .tolerance = 0}};
  return p;
}

/// The sum of x over all axes but `axis`.
Problem sum_but(int axis, const char* family, const Tensor& x, std::vector<std::pair<std::string, int64_t>> sizes) {
  const Tensor out = on_device({x.size(axis)}, x.dtype());
  Problem p{.family = family,
            .dtype = std::string(name_of(x.dtype())),
            .sizes = std::move(sizes),
            .bytes = bytes_of({x, out}),
            .flops = static_cast<double>(x.numel()),
            .outputs = {out}};
  Shape kept;
  for (int d = 0; d < x.dim(); ++d) kept.push_back(d == axis ? x.size(d) : 1);
  const kernels::SumArgs args{out.view(kept).tensor_view(), x.tensor_view()};
  p.exact = [=](int64_t first, int64_t count) {
    const Tensor part = x.narrow(axis, first, count).contiguous().to(kCpu).to(kFloat64);
    return std::vector{part.transpose(0, axis).contiguous().flatten(1).sum({1})};
  };
  p.rungs = {{.name = "shipped",
              .run = [args, x, out](Stream& stream) { kernels::sum(args, stream); },
              .peers = {memcpy_peer(p.bytes)},
              .tolerance = tolerance_of(x.dtype())}};
  return p;
}

Problem column_sum(int64_t rows, int64_t columns, DType dtype) {
  return sum_but(1, "column_sum", normal({rows, columns}, dtype), {{"rows", rows}, {"columns", columns}});
}

Problem channel_sum(const Images& images, DType dtype) {
  return sum_but(1, "channel_sum", normal({images.batch, images.channels, images.side, images.side}, dtype),
                 images.names());
}

}  // namespace

void add_streams(std::vector<Entry>& list, Scale scale) {
  const bool full = scale == Scale::full;
  for (const DType dtype : {kFloat32, kHalf}) {
    list.push_back({"add", [=] { return add(full ? 1 << 27 : 3001, dtype); }, false});
    list.push_back({"gelu", [=] { return gelu_of(full ? 1 << 27 : 3001, dtype); }, false});
  }
  // 148 tensors with 124 million numbers in total, as in the smallest GPT-2.
  list.push_back({"adamw", [=] { return full ? adamw(148 * 840000, 148) : adamw(3 * 500, 3); }, false});
  list.push_back({"scan", [=] { return scan(full ? 1 << 26 : 3001); }, false});
  const Images after{full ? 2048 : 2, full ? 64 : 3, 24}, before{full ? 2048 : 2, full ? 32 : 3, 26};
  for (const bool backward : {false, true}) {
    list.push_back({backward ? "pool_backward" : "pool", [=] { return pool(after, kHalf, backward); }, false});
  }
  const auto columns = [&](int64_t n, DType dtype) {
    list.push_back(
        {"column_sum", [=] { return full ? column_sum(8192, n, dtype) : column_sum(300, 40, dtype); }, false});
  };
  columns(1024, kFloat32), columns(1024, kBFloat16), columns(4096, kBFloat16);
  for (const Images& images : {after, before}) {
    list.push_back({"channel_sum", [=] { return channel_sum(images, kHalf); }, false});
  }
  list.push_back({"sort", [=] { return radix_sort(full ? 1 << 24 : 3001); }, false});
}

}  // namespace levin::bench
