#pragma once
// Gloo's TCP connections as a transport, with one connection between each pair of ranks.

#include "src/transports/transport.h"

namespace levin::distributed {

class GlooTransport final : public Transport {
 public:
  /// Connects all members through `store`, which only this group uses. Throws StoreError.
  GlooTransport(Store& store, const std::string& local_address, int rank, int size, Duration timeout);
  ~GlooTransport() override;
  GlooTransport(const GlooTransport&) = delete;
  GlooTransport& operator=(const GlooTransport&) = delete;

  std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) override;
  void end(const RankEvent& event) override;
  std::optional<RankEvent> ended() const override;

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace levin::distributed
