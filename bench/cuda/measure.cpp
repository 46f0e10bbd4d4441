#include "bench/cuda/measure.h"

#include <levin/autograd/ops.h>
#include <levin/kernels/cuda.h>
#include <levin/kernels/matmul.h>

#include <algorithm>
#include <chrono>

namespace levin::bench {

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Returns the quantile `part` of the sorted numbers, interpolated linearly.
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

Times summary_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return {quantile(seconds, 0.5), seconds.front(), static_cast<int>(seconds.size())};
}

Meter::Meter(const Options& options)
    : options_(options), flush_(empty({options.flush_bytes}, {.dtype = kUInt8, .device = cuda(0)})) {}

std::vector<double> Meter::seconds_of(std::span<const Run* const> calls) {
  const cuda::Stream queue = cuda::current_stream();
  Stream stream = queue;
  std::vector<cuda::Event> marks;
  for (std::size_t i = 0; i < 2 * calls.size(); ++i) marks.emplace_back(true);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    device_backend(stream.device())
        .fill_bytes(flush_.raw_data(), static_cast<int>(i & 0x7F), static_cast<std::size_t>(flush_.numel()), stream);
    marks[2 * i].record(queue);
    (*calls[i])(stream);
    marks[2 * i + 1].record(queue);
  }
  queue.synchronize();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < calls.size(); ++i) seconds.push_back(marks[2 * i].elapsed_time(marks[2 * i + 1]) * 1e-3);
  return seconds;
}

std::vector<std::vector<double>> Meter::quads_of(const Run& own, const Run& peer) {
  const Run* const order[] = {&own, &peer, &peer, &own};
  auto start = std::chrono::steady_clock::now();
  do {
    seconds_of(std::span(order).first(2));
  } while (seconds_since(start) < options_.warm_up_seconds);
  start = std::chrono::steady_clock::now();
  std::vector<std::vector<double>> quads;
  while (static_cast<int>(quads.size()) < options_.quads &&
         (quads.size() < 2 || seconds_since(start) < options_.quad_seconds))
    quads.push_back(seconds_of(order));
  return quads;
}

Times Meter::measure(const Run& own) {
  std::vector<double> seconds;
  for (const auto& quad : quads_of(own, own)) seconds.insert(seconds.end(), quad.begin(), quad.end());
  return summary_of(seconds);
}

Duel Meter::measure(const Run& own, const Run& peer) {
  std::vector<double> mine, theirs, ratios;
  for (const auto& quad : quads_of(own, peer)) {
    mine.push_back(quad[0]), mine.push_back(quad[3]);
    theirs.push_back(quad[1]), theirs.push_back(quad[2]);
    ratios.push_back(quad[1] / quad[0]), ratios.push_back(quad[2] / quad[3]);
  }
  std::ranges::sort(ratios);
  return {.own = summary_of(mine),
          .peer = summary_of(theirs),
          .ratio = quantile(ratios, 0.5),
          .lower_ratio = quantile(ratios, 0.25),
          .upper_ratio = quantile(ratios, 0.75)};
}

std::optional<double> Ceilings::flops_of(const std::string& unit) const {
  for (const auto& [name, rate] : flops)
    if (name == unit) return rate;
  return {};
}

Ceilings measure_ceilings(Meter& meter, Scale scale) {
  Ceilings c;
  const double bytes = scale == Scale::full ? 2.0 * (1 << 30) : 4096.0;
  const Peer copy = memcpy_peer(bytes);
  const Duel same = meter.measure(copy.run, copy.run);
  c.copy = bytes / same.own.median;
  c.noise = (same.upper_ratio - same.lower_ratio) / 2;

  const int64_t n = scale == Scale::full ? 8192 : 16;
  const double flops = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  for (const auto& [unit, dtype] :
       {std::pair{"f32", kFloat32}, {"tf32", kFloat32}, {"f16", kHalf}, {"bf16", kBFloat16}}) {
    const Tensor a = normal({1, n, n}, dtype), b = normal({1, n, n}, dtype), out = empty_like(a);
    const kernels::MatmulArgs args{out.tensor_view(), a.tensor_view(), b.tensor_view(), {}};
    const Peer product = cublas_peer(args, unit == std::string("tf32"));
    try {
      if (!product.run) throw DeviceError(product.missing);
      c.flops.emplace_back(unit, flops / meter.measure(product.run).median);
    } catch (const DeviceError& e) {
      c.missing = e.what();
      return c;
    }
  }
  return c;
}

std::optional<double> floor_of(const Problem& problem, const Rung& rung, const Ceilings& ceilings) {
  if (ceilings.copy == 0) return {};
  const double moved = problem.bytes / ceilings.copy;
  if (rung.unit.empty()) return moved;
  if (const auto rate = ceilings.flops_of(rung.unit)) return std::max(moved, problem.flops / *rate);
  return {};
}

}  // namespace levin::bench
