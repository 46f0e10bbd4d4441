#pragma once
// Messages and reductions through the memory of one host.

#include "src/shared_memory.h"

namespace levin::distributed {

class SharedTransport final : public Transport {
 public:
  explicit SharedTransport(std::unique_ptr<SharedMemory> memory);
  ~SharedTransport() override;

  std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) override;
  void end(const RankEvent& event) override;
  std::optional<RankEvent> ended() const override;

 private:
  std::unique_ptr<SharedMemory> memory_;
  mutable std::mutex mutex_;
  std::optional<RankEvent> event_;
  std::atomic<bool> has_ended_ = false;
  std::uint64_t steps_ = 0;  // of the direct operations so far; the same on all ranks
  friend class SharedChannel;
};

}  // namespace levin::distributed
