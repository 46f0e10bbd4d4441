#pragma once
// Messages between the ranks of a group: what the algorithms are written on.

#include <cstddef>
#include <memory>

#include "src/watch.h"

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

/// Short messages that a rank always has room for: they set out without asking first. All ranks call alike.
class Letters {
 public:
  virtual ~Letters() = default;
  virtual std::size_t room() const = 0;  ///< bytes of a letter; the same on all ranks
  /// Where the next letter to a rank is written, when the one before is gone.
  virtual std::byte* write(int to) = 0;
  virtual void send(int to, std::size_t bytes) = 0;
  /// The next letter of a rank, to be read or changed until finish(); waits for it. At most one of each rank.
  virtual std::byte* take(int from) = 0;
  /// Returns when all letters are gone; what was taken makes room for others.
  virtual void finish() = 0;
};

/// Bytes of a letter that holds what a small all_reduce sends, where ranks are few.
constexpr std::size_t letter_room(int ranks) { return 64 + (ranks <= 8 ? std::size_t{16} << 10 : 0); }

/// Blocks in memory that all ranks of a group see, step by step. All ranks call alike.
class SharedBlocks {
 public:
  virtual ~SharedBlocks() = default;
  virtual std::size_t block() const = 0;  ///< bytes; a multiple of any element
  /// Where this rank lays out what `owner` reduces, when the step before the last no longer needs it.
  virtual std::byte* stage(std::uint64_t step, int owner) = 0;
  virtual void staged(std::uint64_t step) = 0;
  /// What `from` has laid out for this rank; waits for it.
  virtual std::byte* wait_staged(std::uint64_t step, int from) = 0;
  /// Where this rank shows its result, when nobody reads the one before the last any more.
  virtual std::byte* result(std::uint64_t step) = 0;
  virtual void reduced(std::uint64_t step) = 0;
  /// The result of `owner`; waits for it.
  virtual const std::byte* wait_result(std::uint64_t step, int owner) = 0;
  virtual void copied(std::uint64_t step) = 0;
  /// All `steps` of the operation are through.
  virtual void finish(std::uint64_t steps) = 0;

  /// Where a tensor of this rank lies in memory that all see, for tensor_at() of another; 0: not there.
  virtual std::uint64_t place_of(const std::byte* tensor) const = 0;
  virtual std::byte* tensor_at(int rank, std::uint64_t place) const = 0;
};

/// Memory that is kept, and not cleared, between uses.
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

/// Memory for tensors that all ranks of a group see. All ranks offer theirs, then all accept those of the others; where
/// one cannot, none allocates.
class SharedTensors {
 public:
  virtual ~SharedTensors() = default;
  virtual void offer() = 0;
  virtual bool accept() = 0;  ///< false where the system refuses
  /// Memory of this rank, zeros; null where there is no more.
  virtual std::shared_ptr<void> allocate(std::size_t bytes) = 0;
};

/// One operation's use of the network.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual std::unique_ptr<MessageBuffer> buffer(void* memory, std::size_t bytes) = 0;
  virtual SharedBlocks* blocks() { return nullptr; }
  virtual Letters* letters() { return nullptr; }
  /// Memory for this operation alone, of any content.
  virtual std::byte* scratch(std::size_t bytes) = 0;
};

enum class TransportKind : std::uint8_t { automatic, tcp, shared };

/// Two kinds of operations run on threads of their own, and must not meet each other's messages.
enum class Traffic : std::uint8_t { collective, message };

/// What connects the ranks of a group.
class Transport {
 public:
  virtual ~Transport() = default;
  /// For one operation, called `name` in messages, that must end by the deadline. Its buffers throw what ended the
  /// group, or CollectiveTimeout.
  virtual std::unique_ptr<Channel> channel(const std::string& name, Clock::time_point deadline, Traffic traffic) = 0;
  virtual SharedTensors* tensors() { return nullptr; }
  /// Ends all waiting, now and later, with this event. Only the first counts.
  virtual void end(const RankEvent& event) = 0;
  virtual std::optional<RankEvent> ended() const = 0;
};

}  // namespace levin::distributed
