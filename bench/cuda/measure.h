#pragma once
// Times device work with events, with cold caches and interleaved with a peer.

#include "bench/cuda/problem.h"

#include <optional>

namespace levin::bench {

/// Statistics of the seconds per call.
struct Times {
  double median = 0, least = 0;
  int calls = 0;
};
Times summary_of(std::vector<double> seconds);

/// Interleaved calls of two implementations in the order own, peer, peer, own, so that clock drift affects both
/// equally.
struct Duel {
  Times own, peer;
  double ratio = 0;                         ///< median of peer / own over pairs; above 1: own is faster
  double lower_ratio = 0, upper_ratio = 0;  ///< quartiles of the ratio
};

struct MeterOptions {
  double warm_up_seconds = 0.15;
  int quads = 10;             ///< groups of four calls, so 20 pairs
  double quad_seconds = 1.5;  ///< no quad starts after this long, except the first two
  std::int64_t flush_bytes = 256 << 20;
};

class Meter {
 public:
  using Options = MeterOptions;
  explicit Meter(const Options& options);

  Times measure(const Run& own);
  Duel measure(const Run& own, const Run& peer);

  /// Returns the seconds of each call. Calls are queued one after the other, each after a write of `flush_bytes` that
  /// evicts the caches and gives the host time to queue. The write and the queueing are not included.
  std::vector<double> seconds_of(std::span<const Run* const> calls);

 private:
  /// Returns the seconds of quads of calls after a warm-up, in the order own, peer, peer, own.
  std::vector<std::vector<double>> quads_of(const Run& own, const Run& peer);

  Options options_;
  Tensor flush_;
};

/// Measured peaks of this machine: bytes per second of a copy, and flops per second of the library's matrix products.
struct Ceilings {
  double copy = 0;   ///< bytes per second; 0: not measured
  double noise = 0;  ///< half the interquartile range of the copy's ratio to itself
  std::vector<std::pair<std::string, double>> flops;  ///< by unit: "f32", "tf32", "f16", "bf16"
  std::string missing;                                ///< the reason why flops is empty
  std::optional<double> flops_of(const std::string& unit) const;
};
Ceilings measure_ceilings(Meter& meter, Scale scale);

/// Returns the lower bound of the seconds: the larger of bytes and flops over their peaks; nothing if a peak was not
/// measured.
std::optional<double> floor_of(const Problem& problem, const Rung& rung, const Ceilings& ceilings);

}  // namespace levin::bench
