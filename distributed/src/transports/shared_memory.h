#pragma once
// Memory that the ranks of one host share, and waiting on changes to it.

#include <atomic>
#include <memory>

#include "src/transports/transport.h"

namespace levin::distributed {

/// Counters of a byte stream from one rank to another.
struct SharedPipe {
  alignas(64) std::atomic<std::uint64_t> written;  // bytes since the start
  alignas(64) std::atomic<std::uint64_t> read;
};

/// Number of blocks that a rank has staged, reduced, and copied from the others since the start.
struct SharedProgress {
  alignas(64) std::atomic<std::uint64_t> staged;
  alignas(64) std::atomic<std::uint64_t> reduced;
  alignas(64) std::atomic<std::uint64_t> copied;
};

/// Number of mailbox messages from one rank to another since the start.
struct SharedMailbox {
  alignas(64) std::atomic<std::uint64_t> sent;
  alignas(64) std::atomic<std::uint64_t> taken;
};

/// Process and descriptor with which other ranks open a rank's arena.
struct SharedOffer {
  int pid, fd;
};

/// A futex on which a rank sleeps; others ring it after a change.
struct SharedBell {
  alignas(64) std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;
};

/// The mapping, with the same layout on all ranks. It is freed with the last process that maps it, however that ends.
class SharedMemory {
 public:
  /// Must be called on all ranks of a group, with a store for this call only. Returns null, on every rank, if they do
  /// not share a host or one of them chose tcp. Throws StoreError, on every rank, if one of them requires shared memory
  /// then.
  static std::unique_ptr<SharedMemory> open(Store& store, int rank, int size, TransportKind kind);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::size_t block() const { return block_; }  ///< bytes of a block; a multiple of any element size
  std::size_t pipe_bytes() const { return pipe_bytes_; }

  SharedBell& bell(int rank, Traffic traffic) const;
  SharedProgress& progress(int rank) const;
  SharedPipe& pipe(int from, int to, Traffic traffic) const;
  std::byte* pipe_data(int from, int to, Traffic traffic) const;
  SharedMailbox& mailbox(int from, int to) const;
  std::size_t mailbox_bytes() const { return mailbox_bytes_; }
  std::byte* mailbox_slot(int from, int to, std::uint64_t number) const;
  SharedOffer& offer(int rank) const;
  std::string token() const;  ///< a secret of this group
  /// Memory in which `from` stages the input of `owner`'s reduction, and in which `owner` publishes its result. Steps
  /// alternate between kDepth copies.
  std::byte* staged(int from, int owner, std::uint64_t step) const;
  std::byte* result(int owner, std::uint64_t step) const;
  static constexpr std::uint64_t kDepth = 2;  ///< number of steps, and of messages in a mailbox, with separate memory

  void ring(int rank, Traffic traffic) const;
  void ring_others(Traffic traffic) const;
  /// Waits for the condition for a limited time: spins for microseconds, yields, then sleeps until rung.
  template <class Condition>
  void wait_a_moment(Traffic traffic, const Condition& done) const {
    for (int i = 0; i < spins_; ++i) {
      if (done()) return;
      pause();
    }
    for (int i = 0; i < kYields; ++i) {
      if (done()) return;
      yield();
    }
    SharedBell& own = bell(rank_, traffic);
    const std::uint32_t rings = own.rings.load();
    if (!done()) sleep(own, rings);
  }

 private:
  SharedMemory(int rank, int size);
  std::size_t pair_index(int from, int to) const;
  std::size_t pair_index(int from, int to, Traffic traffic) const;
  std::string offer(Store& store, TransportKind kind, Descriptor& fd);
  std::string accept(Store& store, TransportKind kind);
  bool map(int fd);
  static void pause();
  static void yield();
  static void sleep(SharedBell& bell, std::uint32_t rings);
  static constexpr int kYields = 5;

  int rank_, size_, spins_;
  std::size_t block_, pipe_bytes_, mailbox_bytes_;
  // Offsets of the regions, in bytes.
  std::size_t bells_, progress_, pipes_, mailboxes_, offers_, pipe_data_, mailbox_data_, staged_, results_, total_;
  std::byte* base_ = nullptr;
};

}  // namespace levin::distributed
