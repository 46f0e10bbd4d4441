#pragma once
// Messages between the ranks of a group, on which the collective algorithms are built.

#include <cstddef>
#include <memory>

#include "src/rendezvous/failure_detector.h"

namespace levin::distributed {

/// Memory to send from or receive into. All calls of one buffer come from one thread.
class MessageBuffer {
 public:
  virtual ~MessageBuffer() = default;
  /// Begin to send or receive `bytes` from `offset` on; messages with one slot between two ranks keep their order.
  virtual void send(int to, std::uint64_t slot, std::size_t offset, std::size_t bytes) = 0;
  virtual void recv(int from, std::uint64_t slot, std::size_t offset, std::size_t bytes) = 0;
  /// Wait until one send or receive that was begun is done.
  virtual void wait_send() = 0;
  virtual void wait_recv() = 0;
};

/// Short messages with preallocated memory at the receiver, which are sent without negotiation. All ranks make the same
/// calls.
class Mailboxes {
 public:
  virtual ~Mailboxes() = default;
  virtual std::size_t room() const = 0;  ///< largest message in bytes; the same on all ranks
  /// Returns memory for the next message to a rank, once the one before has been sent.
  virtual std::byte* write(int to) = 0;
  virtual void send(int to, std::size_t bytes) = 0;
  /// Waits for the next message of a rank and returns it, to be read or changed until finish(). At most one per rank.
  virtual std::byte* take(int from) = 0;
  /// Returns when all messages have been sent; frees the slots of the messages that were taken.
  virtual void finish() = 0;
};

/// Returns the bytes of a message that holds the data of a small all_reduce, if there are few ranks.
constexpr std::size_t mailbox_room(int ranks) { return 64 + (ranks <= 8 ? std::size_t{16} << 10 : 0); }

/// Blocks in memory that all ranks of a group access step by step. All ranks make the same calls.
class SharedBlocks {
 public:
  virtual ~SharedBlocks() = default;
  virtual std::size_t block() const = 0;  ///< bytes; a multiple of any element size
  /// Returns memory in which this rank stages its input of `owner`'s reduction, once the step before the last is done
  /// with it.
  virtual std::byte* stage(std::uint64_t step, int owner) = 0;
  virtual void staged(std::uint64_t step) = 0;
  /// Waits for the input that `from` has staged for this rank, and returns it.
  virtual std::byte* wait_staged(std::uint64_t step, int from) = 0;
  /// Returns memory for this rank's result, once all ranks have copied the result before the last.
  virtual std::byte* result(std::uint64_t step) = 0;
  virtual void reduced(std::uint64_t step) = 0;
  /// Waits for the result of `owner`, and returns it.
  virtual const std::byte* wait_result(std::uint64_t step, int owner) = 0;
  virtual void copied(std::uint64_t step) = 0;
  /// Called after all `steps` of the operation.
  virtual void finish(std::uint64_t steps) = 0;

  /// Returns the offset of a tensor in this rank's arena, for tensor_at() on other ranks; 0 if it is not there.
  virtual std::uint64_t place_of(const std::byte* tensor) const = 0;
  virtual std::byte* tensor_at(int rank, std::uint64_t place) const = 0;
};

/// Memory that is kept between uses without being cleared.
class Scratch {
 public:
  std::byte* of(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::size_t bytes_ = 0;
};

/// Memory for tensors that all ranks of a group can access. All ranks offer their arenas, then all accept those of the
/// others; if one cannot, none allocates.
class SharedTensors {
 public:
  virtual ~SharedTensors() = default;
  virtual void offer() = 0;
  virtual bool accept() = 0;  ///< returns false where the system refuses
  /// Allocates zeroed memory on this rank; null where there is none left.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
};

/// The communication of one operation.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) = 0;
  virtual SharedBlocks* blocks() { return nullptr; }
  virtual Mailboxes* mailboxes() { return nullptr; }
  /// Uninitialised memory for this operation only.
  virtual std::byte* scratch(std::size_t bytes) = 0;
};

enum class TransportKind : std::uint8_t { automatic, tcp, shared };

/// Kinds of operations that run on separate threads, and must not receive each other's messages.
enum class Traffic : std::uint8_t { collective, message };

/// The connections among the ranks of a group.
class Transport {
 public:
  virtual ~Transport() = default;
  /// Opens a channel for one operation, called `name` in error messages, that must end by the deadline. Its buffers
  /// throw the event that ended the group, or CollectiveTimeout.
  virtual std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) = 0;
  virtual SharedTensors* tensors() { return nullptr; }
  /// Interrupts all present and future waits with this event. Only the first call counts.
  virtual void end(const RankEvent& event) = 0;
  virtual std::optional<RankEvent> ended() const = 0;
};

}  // namespace levin::distributed
