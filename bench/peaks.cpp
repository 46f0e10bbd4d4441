// Measures this machine's peaks: the copy bandwidth and the rate of fused multiply-adds. All other results are read as
// a fraction of one of them.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/peaks.cpp"
#include "kernels/cpu/targets.h"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "bench/benchmarks.h"
#include "bench/peaks.h"

HWY_BEFORE_NAMESPACE();
namespace levin::bench::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Twelve independent chains of multiply-adds: enough to fill the pipelines of two units with a latency of five cycles,
/// and few enough to stay in the sixteen registers of AVX2 beside the two constants.
double multiply_adds(std::int64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.999999f), term = hn::Set(d, 1e-6f);
  // Each chain starts with another value, so that the compiler cannot merge them.
  const auto start = [&](int chain) HWY_ATTR { return hn::Set(d, 1.0f + 0.01f * static_cast<float>(chain)); };
  auto a = start(0), b = start(1), c = start(2), e = start(3), f = start(4), g = start(5), h = start(6), i = start(7);
  auto j = start(8), k = start(9), l = start(10), m = start(11);
  for (std::int64_t r = 0; r < rounds; ++r) {
    a = hn::MulAdd(a, factor, term), b = hn::MulAdd(b, factor, term), c = hn::MulAdd(c, factor, term);
    e = hn::MulAdd(e, factor, term), f = hn::MulAdd(f, factor, term), g = hn::MulAdd(g, factor, term);
    h = hn::MulAdd(h, factor, term), i = hn::MulAdd(i, factor, term), j = hn::MulAdd(j, factor, term);
    k = hn::MulAdd(k, factor, term), l = hn::MulAdd(l, factor, term), m = hn::MulAdd(m, factor, term);
  }
  const auto first = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(f, g), hn::Add(h, i)));
  const auto second = hn::Add(hn::Add(j, k), hn::Add(l, m));
  const double total = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second))));
  const double flops = 2.0 * 12.0 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
  return total > 0.0 ? flops : 0.0;  // uses the sum, so that the loop is not optimised away
}

}  // namespace levin::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <levin/core/parallel.h>
#include <levin/core/tensor.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

namespace levin::bench {

HWY_EXPORT(multiply_adds);

namespace {

/// Returns the least time of the calls that fit into `budget` seconds, because clocks ramp up and the machine's load
/// varies; at least three.
template <class F>
double least_seconds(double budget, F&& f) {
  double least = 1e30, all = 0;
  for (int call = 0; call < 3 || all < budget; ++call) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    least = std::min(least, seconds);
    all += seconds;
  }
  return least;
}

/// Returns the rate of multiply-adds in all threads.
double rate_of_flops(double budget, std::int64_t rounds) {
  const int threads = num_threads();
  std::vector<double> done(static_cast<std::size_t>(threads));
  const double seconds = least_seconds(budget, [&] {
    parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        done[static_cast<std::size_t>(t)] = HWY_DYNAMIC_DISPATCH(multiply_adds)(rounds);
    });
  });
  return std::accumulate(done.begin(), done.end(), 0.0) / seconds;
}

Tensor filled(int64_t numel) {
  Tensor x = empty({numel});
  x.fill_(1.0f);
  return x;
}

/// Returns the rate of a copy of `from` to `to`, in bytes read and written.
double rate_of_bytes(double budget, const Tensor& from, const Tensor& to) {
  const double seconds = least_seconds(budget, [&] { to.copy_(from); });
  return 2.0 * 4.0 * static_cast<double>(from.numel()) / seconds;
}

}  // namespace

double peak_flops() {
  static const double peak = rate_of_flops(0.3, 1'000'000);
  return peak;
}

double peak_bytes() {
  static const double peak = rate_of_bytes(0.3, filled(16 << 20), empty({16 << 20}));
  return peak;
}

Speed speed_now() {
  static const Tensor from = filled(4 << 20), to = empty({4 << 20});
  return {.flops = rate_of_flops(0.0, 200'000), .bytes = rate_of_bytes(0.0, from, to)};
}

std::string instruction_set() {
  for (std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS, bit = 1; targets != 0; bit *= 2)
    if ((targets & bit) != 0) return hwy::TargetName(bit);  // the best target is the lowest bit
  return "none";
}

}  // namespace levin::bench

#endif
