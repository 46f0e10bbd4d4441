#pragma once
// Memory shared by the ranks of one communicator, whether threads or processes: their state, their calls, and a message
// queue from every rank to every other.

#include <levin/emulator/nccl_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace levin::emulator::nccl {

inline constexpr int kMostRanks = 64;
inline constexpr std::size_t kMessageBytes = 32 * 1024, kMessages = 4;

/// Returns the name of a rank in messages.
inline std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

enum class Kind : std::uint8_t { all_reduce, reduce, broadcast, all_gather, reduce_scatter, message };

/// A rank's call. Calls with the same number must be equal on all ranks; messages are numbered per pair of ranks.
struct Call {
  std::uint64_t number = 0, count = 0;
  Kind kind = Kind::all_reduce;
  ncclDataType_t type = ncclFloat32;
  ncclRedOp_t op = ncclSum;
  int root = 0;

  bool operator==(const Call&) const = default;
};

/// A published call that other ranks may read while it is replaced.
class Announced {
 public:
  void write(const Call& call);
  /// Returns false if a call with another number is published.
  bool read(std::uint64_t number, Call& call) const;

 private:
  std::atomic<std::uint64_t> number_, count_, rest_;
};

struct Message {
  Call call;
  std::uint64_t bytes;
  alignas(64) char data[kMessageBytes];
};

/// A queue with one writer and one reader.
struct Channel {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  Message messages[kMessages];

  bool has_message() const { return read.load() != written.load(std::memory_order_acquire); }
  bool has_room() const { return written.load() - read.load(std::memory_order_acquire) < kMessages; }
  Message& incoming() { return messages[read.load() % kMessages]; }
  Message& outgoing() { return messages[written.load() % kMessages]; }
};

enum class Presence : std::uint32_t { absent, present, left };

struct alignas(64) RankSlot {
  std::atomic<Presence> presence;
  std::atomic<std::uint32_t> seat;            ///< the rank whose bell this rank's process waits on
  std::atomic<std::uint32_t> bell;            ///< a futex
  std::atomic<std::uint32_t> message_wanted;  ///< a peer waits for its message or for space
  std::atomic<std::uint64_t> process, pid;    ///< a random number; the pid is for messages
  std::atomic<std::uint64_t> wanted;          ///< peers wait for its collectives below this number
  std::atomic<std::uint64_t> splits;          ///< number of ncclCommSplit calls
  std::atomic<int> color[2], key[2];          ///< of the last two splits
  Announced announced[8];
};

struct Header {
  std::atomic<std::uint32_t> ready;
  std::atomic<std::uint32_t> changed;  ///< a futex: a rank joined, left or called ncclCommSplit
  std::atomic<std::uint32_t> failed;   ///< 0: no, 1: its text is being written, 2: yes
  std::atomic<std::uint32_t> code;
  int ranks;
  char text[500];
  RankSlot slots[kMostRanks];
};

/// Waits at most `milliseconds` until the word differs from `seen`.
void wait_for_change(std::atomic<std::uint32_t>& word, std::uint32_t seen, int milliseconds);
void wake(std::atomic<std::uint32_t>& word);

/// One process's mapping. The file in /dev/shm is unlinked once all ranks have joined, so the kernel frees it with the
/// last of them, however that ends. Each rank holds a lock on a byte of the file, which the kernel drops when the
/// process ends.
class Segment {
 public:
  /// Creates or opens the segment. On failure returns null and sets `error`.
  static std::shared_ptr<Segment> open(const std::string& name, int ranks, std::string& error);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  int ranks() const { return header_->ranks; }
  Header& header() { return *header_; }
  RankSlot& slot(int rank) { return header_->slots[rank]; }
  Channel& channel(int from, int to) { return channels_[from * ranks() + to]; }

  /// Returns false if the rank has joined already. `seat` is the first rank of this process.
  bool join(int rank, int seat);
  void leave(int rank);
  bool is_local(int rank) { return slot(rank).process.load() == process_; }
  /// Returns the first rank whose process has ended without leaving, or -1.
  int find_dead();
  void ring(int rank);
  void ring_all();

  bool failed() { return header_->failed.load(std::memory_order_acquire) == 2; }
  ncclResult_t code();
  std::string text();
  /// Records a failure that all ranks will see. Only the first one counts.
  void fail(ncclResult_t code, const std::string& text);
  void remove_name();
  /// Returns the name given to open().
  std::string short_name() const;

 private:
  Segment(const std::string& name, int file, void* memory, std::size_t bytes);

  std::string name_;
  int file_;
  std::size_t bytes_;
  Header* header_;
  Channel* channels_;
  std::uint64_t process_;
};

std::uint64_t random_number();
std::string describe(const Call& call);
std::size_t size_of(ncclDataType_t type);

}  // namespace levin::emulator::nccl
