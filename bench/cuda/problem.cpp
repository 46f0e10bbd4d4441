#include "bench/cuda/problem.h"

#include <levin/autograd/ops.h>

#include <algorithm>

namespace levin::bench {

std::string Problem::shape() const {
  std::string text;
  for (const auto& [name, size] : sizes) text += (text.empty() ? "" : " ") + name + "=" + std::to_string(size);
  return text;
}

void set_levels(Problem& problem, const std::string& ships) {
  std::vector<Rung>& rungs = problem.rungs;
  if (rungs.empty()) return;
  for (Rung& rung : rungs) rung.level = &rung == &rungs.front() ? Level::naive : Level::others;
  const auto named = std::ranges::find(rungs, ships, &Rung::name);
  (named == rungs.end() ? rungs.back() : *named).level = Level::ships;
}

std::vector<Entry> problems(Scale scale) {
  std::vector<Entry> list;
  add_lines(list, scale);
  add_streams(list, scale);
  add_gemm(list, scale);
  add_attention(list, scale);
  add_conv(list, scale);
  return list;
}

Tensor normal(const Shape& sizes, DType dtype) { return randn(sizes, {.dtype = dtype, .device = cuda(0)}); }

Tensor on_device(const Shape& sizes, DType dtype) { return empty(sizes, {.dtype = dtype, .device = cuda(0)}); }

Tensor rows_of(const Tensor& x, int64_t first, int64_t count) {
  return x.narrow(0, first, count).to(kCpu).to(kFloat64).contiguous();
}

double tolerance_of(DType dtype) { return dtype == DType::bf16 ? 1e-2 : dtype == DType::f16 ? 2e-3 : 1e-5; }

std::string unit_of(DType dtype) { return dtype == DType::bf16 ? "bf16" : dtype == DType::f16 ? "f16" : "f32"; }

double bytes_of(std::span<const Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& t : tensors) bytes += static_cast<double>(t.numel() * size_of(t.dtype()));
  return bytes;
}

Peer memcpy_peer(double bytes) {
  const auto half = std::max<int64_t>(static_cast<int64_t>(bytes / 2), 1);
  const Tensor from = normal({(half + 3) / 4}, kFloat32), to = empty_like(from);
  return {.name = "memcpy",
          .run =
              [from, to, half](Stream& stream) {
                device_backend(stream.device())
                    .copy(to.raw_data(), stream.device(), from.raw_data(), stream.device(),
                          static_cast<std::size_t>(half), stream);
              },
          .computes = false};
}

}  // namespace levin::bench
