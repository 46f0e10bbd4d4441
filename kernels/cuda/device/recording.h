#pragma once
// Values that the host changes between replays of a graph, written to the graph's device memory before each replay.

#include <levin/core/capture/recording.h>

#include <cuda_runtime.h>

#include <vector>

namespace levin::kernels::cuda {

/// Values of one write. They travel as a kernel argument, so that values an earlier replay still reads are not
/// overwritten too early, and no host memory has to wait for the device. A number occupies the first of its two words.
struct ReplayValues {
  static constexpr int kMost = 32;
  GeneratorState at[kMost];
};

/// Queues to[i] = values.at[i] for i < `count`.
void write_replay_values(GeneratorState* to, const ReplayValues& values, int count, const Stream& stream);

class GraphRecording final : public Recording {
 public:
  /// Records the capture that has just begun on the stream.
  GraphRecording(int device, cudaStream_t stream);
  /// No replay may be in progress.
  ~GraphRecording() override;
  GraphRecording(const GraphRecording&) = delete;
  GraphRecording& operator=(const GraphRecording&) = delete;

  PhiloxState draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) override;
  const double* variable(std::function<double()> now) override;

  /// Called when the capture has ended.
  void end();
  /// Queues the values that the next replay needs on its stream; the generators advance by the blocks that it uses.
  void before_run(cudaStream_t stream);

 private:
  struct Value {
    std::shared_ptr<Generator> generator{};  ///< null for a `number`
    std::uint64_t blocks = 0;                ///< number of blocks that a replay uses
    std::function<double()> number{};
  };
  GeneratorState* place(std::size_t i) const { return slabs_[i / ReplayValues::kMost] + i % ReplayValues::kMost; }
  GeneratorState* add(Value value);

  int device_;
  cudaStream_t stream_;  ///< the captured stream
  unsigned long long id_ = 0;
  std::vector<Value> values_;
  std::vector<GeneratorState*> slabs_;  ///< device memory, kMost values each
};

}  // namespace levin::kernels::cuda
