#pragma once
// Gloo's TCP connections as a transport: one between each two ranks of a group.

#include "src/transport.h"

namespace levin::distributed {

/// Gloo writes to sockets whose other end may be gone; that must be an error, not the signal that ends the process.
class WithoutSigpipe {
 public:
  WithoutSigpipe();
  ~WithoutSigpipe();
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  struct Mask;
  std::unique_ptr<Mask> old_;
};

class GlooTransport final : public Transport {
 public:
  /// Connects all members through `store`, which is this group's alone. Throws StoreError.
  GlooTransport(Store& store, const std::string& local_address, int rank, int size, Milliseconds timeout);
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
