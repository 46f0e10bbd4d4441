#pragma once
// The recording of the CPU's work in a captured step.

#include "replay_memory.h"

#include <levin/core/capture/host_capture.h>
#include <levin/core/capture/recording.h>
#include <levin/core/storage.h>

#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

namespace levin {

/// The kernel calls of a captured step with everything that they refer to.
class HostRecording final : public Recording, public detail::HostCapture {
 public:
  /// Begins to capture this thread's work, with the memory of `before` unless that is null.
  explicit HostRecording(const HostRecording* before);
  ~HostRecording() override;

  PhiloxState draw(const std::shared_ptr<Generator>& generator, std::uint64_t blocks) override;
  const double* variable(std::function<double()> now) override;
  void* allocate(std::size_t bytes, std::function<void()>& release) override;
  void keep(const StoragePtr& storage) override;
  void* argument_memory(std::size_t bytes, std::size_t alignment) override;
  void add(const detail::CapturedCall& call) override { calls_.push_back(call); }

  /// Ends the recording.
  void end();
  /// Reads the values that the next replay needs; throws what they throw, before anything has changed.
  void read_values();
  /// Lets the generators advance, and runs all calls.
  void run();

  std::size_t calls() const { return calls_.size(); }
  std::size_t memory() const { return memory_->bytes(); }

 private:
  struct Number {
    std::function<double()> now;
    double value = 0;
  };
  struct Drawn {
    std::shared_ptr<Generator> generator;
    std::uint64_t blocks = 0;  ///< number of blocks that a replay uses
    GeneratorState at{};
  };

  std::shared_ptr<ReplayMemory> memory_;
  std::vector<detail::CapturedCall> calls_;
  std::vector<std::unique_ptr<std::byte[]>> arguments_;
  std::byte* next_ = nullptr;  ///< free memory of the last of them
  std::size_t left_ = 0;
  std::unordered_map<const Storage*, StoragePtr> kept_;
  std::deque<Number> numbers_;  ///< a deque, as kernels refer to its elements
  std::deque<Drawn> drawn_;
};

}  // namespace levin
