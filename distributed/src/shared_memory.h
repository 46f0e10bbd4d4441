#pragma once
// Memory that the ranks of one host share, and how they wait for each other there.

#include <atomic>
#include <memory>

#include "src/transport.h"

namespace levin::distributed {

/// Bytes from one rank to another, in order.
struct SharedPipe {
  alignas(64) std::atomic<std::uint64_t> written;  // bytes, ever
  alignas(64) std::atomic<std::uint64_t> read;
};

/// How many blocks a rank has laid out, reduced, and taken over from the others, ever.
struct SharedProgress {
  alignas(64) std::atomic<std::uint64_t> staged;
  alignas(64) std::atomic<std::uint64_t> reduced;
  alignas(64) std::atomic<std::uint64_t> copied;
};

/// Letters from one rank to another, ever.
struct SharedLetters {
  alignas(64) std::atomic<std::uint64_t> sent;
  alignas(64) std::atomic<std::uint64_t> taken;
};

/// Where the others find the memory for tensors of a rank.
struct SharedOffer {
  int pid, fd;
};

/// What a rank sleeps on: whoever changes something for it rings.
struct SharedBell {
  alignas(64) std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleepers;
};

/// The mapping, the same on all ranks. It goes with the last process that has it, however that ends.
class SharedMemory {
 public:
  /// All ranks of a group call it alike, with a store of their own. Null, on every rank, where they do not share a host
  /// or one of them wants tcp; StoreError, on every rank, where one then wants nothing but shared memory.
  static std::unique_ptr<SharedMemory> open(Store& store, int rank, int size, TransportKind kind);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  std::size_t block() const { return block_; }  ///< bytes of a block; a multiple of any element
  std::size_t pipe_bytes() const { return pipe_bytes_; }

  SharedBell& bell(int rank, Traffic traffic) const;
  SharedProgress& progress(int rank) const;
  SharedPipe& pipe(int from, int to, Traffic traffic) const;
  std::byte* pipe_data(int from, int to, Traffic traffic) const;
  SharedLetters& letters(int from, int to) const;
  std::size_t letter_bytes() const { return letter_bytes_; }
  std::byte* letter(int from, int to, std::uint64_t number) const;
  SharedOffer& offer(int rank) const;
  std::string token() const;  ///< known to the ranks of this group alone
  /// Where `from` lays out what `owner` reduces, and where `owner` shows its result; steps alternate.
  std::byte* staged(int from, int owner, std::uint64_t step) const;
  std::byte* result(int owner, std::uint64_t step) const;
  static constexpr std::uint64_t kDepth = 2;  ///< steps, and letters, that have memory of their own

  void ring(int rank, Traffic traffic) const;
  void ring_others(Traffic traffic) const;
  /// Spins for some microseconds, lets others run, then sleeps until rung, a moment at most.
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
  std::size_t block_, pipe_bytes_, letter_bytes_;
  // Where they begin, in bytes.
  std::size_t bells_, progress_, pipes_, letters_, offers_, pipe_data_, letter_data_, staged_, results_, total_;
  std::byte* base_ = nullptr;
};

}  // namespace levin::distributed
