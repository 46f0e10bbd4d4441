#pragma once
// Messages and reductions through the shared memory of one host.

#include <vector>

#include "src/transports/shared_arena.h"
#include "src/transports/shared_memory.h"

namespace levin::distributed {

class SharedTransport final : public Transport, public SharedTensors {
 public:
  explicit SharedTransport(std::unique_ptr<SharedMemory> memory);
  ~SharedTransport() override;

  std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) override;
  SharedTensors* tensors() override { return this; }
  void offer() override;
  bool accept() override;
  std::shared_ptr<void> allocate(std::size_t bytes) override;
  void end(const RankEvent& event) override;
  std::optional<RankEvent> ended() const override;

 private:
  std::unique_ptr<SharedMemory> memory_;
  std::vector<std::shared_ptr<SharedArena>> arenas_;  // by rank
  std::atomic<bool> accepted_ = false;
  mutable std::mutex mutex_;
  std::optional<RankEvent> event_;
  std::atomic<bool> has_ended_ = false;
  std::uint64_t steps_ = 0;  // number of steps of all operations so far; the same on all ranks
  friend class SharedChannel;
};

}  // namespace levin::distributed
