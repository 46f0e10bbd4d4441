#pragma once
// Times of device work by events, taken cold and in turn with a peer.

#include "bench/cuda/problem.h"

#include <optional>

namespace levin::bench {

/// Seconds of one call.
struct Times {
  double median = 0, least = 0;
  int calls = 0;
};
Times summary_of(std::vector<double> seconds);

/// Calls of two, measured as own, peer, peer, own, so that a clock that drifts serves both alike.
struct Duel {
  Times own, peer;
  double ratio = 0;                         ///< median of peer over own, pair by pair: above 1, own is faster
  double lower_ratio = 0, upper_ratio = 0;  ///< quartiles
};

struct MeterOptions {
  double warm_up_seconds = 0.15;
  int quads = 10;             ///< of four calls: 20 pairs
  double quad_seconds = 1.5;  ///< no further quads after this long, but two at least
  std::int64_t flush_bytes = 256 << 20;
};

class Meter {
 public:
  using Options = MeterOptions;
  explicit Meter(const Options& options);

  Times measure(const Run& own);
  Duel measure(const Run& own, const Run& peer);

  /// Seconds of each call, queued one after the other, each behind a write of `flush_bytes` that takes the caches and
  /// gives the host time to queue. Neither is inside the measured time.
  std::vector<double> seconds_of(std::span<const Run* const> calls);

 private:
  /// Quads of calls of the two, warmed up; seconds in the order own, peer, peer, own.
  std::vector<std::vector<double>> quads_of(const Run& own, const Run& peer);

  Options options_;
  Tensor flush_;
};

/// What this machine reaches, measured first: bytes a second of copies, and flops a second of the library's products.
struct Ceilings {
  double copy = 0;   ///< 0: not measured
  double noise = 0;  ///< half the distance between the quartiles of the copy's ratio to itself
  std::vector<std::pair<std::string, double>> flops;  ///< by unit: "f32", "tf32", "f16", "bf16"
  std::string missing;                                ///< why flops is empty
  std::optional<double> flops_of(const std::string& unit) const;
};
Ceilings measure_ceilings(Meter& meter, Scale scale);

/// Seconds below which the work cannot be done, by the larger of its two terms; none where a rate was not measured.
std::optional<double> floor_of(const Problem& problem, const Rung& rung, const Ceilings& ceilings);

}  // namespace levin::bench
