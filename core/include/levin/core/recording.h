#pragma once
// Work that a stream records instead of running it, to be run later again and again: a CUDA graph's capture. Through
// here a recording learns which numbers of the host change from run to run.

#include <levin/core/device.h>
#include <levin/core/generator.h>

namespace levin {

/// One capture under way, and then what it recorded. Before each run the recording fills its device memory, in order
/// with the work of the stream and without waiting.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Every run takes `blocks` counters of the generator; returns where kernels find them.
  virtual PhiloxState draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) = 0;
  /// A number in device memory, which `now` gives anew for every run. It runs on the host; what it throws keeps the run
  /// from beginning.
  virtual const double* variable(std::function<double()> now) = 0;
};

/// The recording that the stream's work goes to now, null when it runs. Throws DeviceError when the stream is captured
/// by something else than cuda::Graph.
Recording* recording(const Stream& stream);
/// How to find it on a type of device; a backend says so when it is registered.
void register_recordings(DeviceType type, Recording* (*find)(const Stream&));

}  // namespace levin
