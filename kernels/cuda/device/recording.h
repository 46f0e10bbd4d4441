#pragma once
// Values that the host changes between runs of a graph, written to the graph's device memory before each run.

#include <levin/core/recording.h>

#include <cuda_runtime.h>

#include <vector>

namespace levin::kernels::cuda {

/// Values of one write, which travel as a kernel's argument: what an earlier run still reads is not overwritten before
/// its turn, and no host memory has to wait for the device. A number takes the first word of its two.
struct ReplayValues {
  static constexpr int kMost = 32;
  GeneratorState at[kMost];
};

/// Queues to[i] = values.at[i] for the first `count`.
void write_replay_values(GeneratorState* to, const ReplayValues& values, int count, const Stream& stream);

class GraphRecording final : public Recording {
 public:
  /// Of the capture that has just begun on the stream.
  GraphRecording(int device, cudaStream_t stream);
  /// No run may be under way.
  ~GraphRecording() override;
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  PhiloxState draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) override;
  const double* variable(std::function<double()> now) override;

  /// The capture is over.
  void end();
  /// Queues what the next run needs on its stream; the generators go on by what the run takes.
  void before_run(cudaStream_t stream);

 private:
  struct Value {
    std::shared_ptr<Generator> generator{};  ///< or null, and there is a `number`
    std::uint64_t blocks = 0;                ///< that a run takes
    std::function<double()> number{};
  };
  GeneratorState* place(std::size_t i) const { return slabs_[i / ReplayValues::kMost] + i % ReplayValues::kMost; }
  GeneratorState* add(Value value);

  int device_;
  cudaStream_t stream_;  ///< the captured one
  unsigned long long id_ = 0;
  std::vector<Value> values_;
  std::vector<GeneratorState*> slabs_;  ///< each (kMost) on the device
};

}  // namespace levin::kernels::cuda
