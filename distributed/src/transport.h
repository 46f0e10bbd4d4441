#pragma once
// Messages between the ranks of a group: what the algorithms are written on.

#include <cstddef>
#include <memory>

#include "src/socket.h"

namespace levin::distributed {

/// Memory from or into which messages go. All calls of one buffer come from one thread.
class MessageBuffer {
 public:
  virtual ~MessageBuffer() = default;
  /// Begin to send or receive `bytes` from `offset` on; messages with one slot between two ranks keep their order.
  virtual void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) = 0;
  virtual void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) = 0;
  /// Return when one send or receive that was begun is done.
  virtual void wait_send() = 0;
  virtual void wait_recv() = 0;
};

/// One operation's use of the network.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) = 0;
};

}  // namespace levin::distributed
