#pragma once
// Stream capture: work that a stream records instead of running it, and that is replayed later, as in a CUDA graph.
// This interface tells a recording which host values change from replay to replay.

#include <levin/core/device.h>
#include <levin/core/generator.h>

namespace levin {

/// A capture in progress, and afterwards the captured work. Before each replay the recording fills its device memory,
/// in stream order and without waiting.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Makes every replay take `blocks` counters of the generator; returns the position that kernels read.
  virtual PhiloxState draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) = 0;
  /// Returns a number in device memory that is set to the result of `now` before every replay. `now` runs on the host;
  /// if it throws, the replay does not start.
  virtual const double* variable(std::function<double()> now) = 0;
};

/// Returns the recording that captures the stream's work, or null when the stream is not captured. Throws DeviceError
/// when the stream is captured by anything other than cuda::Graph.
Recording* recording(const Stream& stream);
/// Registers the function that finds the recording of a stream on one type of device; its backend does so at start-up.
void register_recordings(DeviceType type, Recording* (*find)(const Stream&));

}  // namespace levin
