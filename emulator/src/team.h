#pragma once
// The blocks of one cluster (one block where there is no cluster) and the threads that run in them, one fiber each.

#include "fiber.h"
#include "tsan.h"

#include <levin/emulator/execution.h>

#include <memory>
#include <string>
#include <vector>

namespace levin::emulator {

/// Thrown through a kernel's code to end its thread; never leaves the fiber.
struct KernelEnded {};

struct Block;
struct Warp;

/// One thread of the emulated device.
struct Thread {
  enum class State : unsigned char { unstarted, ready, waiting, ended };
  int number = 0;  ///< in its block, x fastest
  uint3 index{};
  Block* block = nullptr;
  Warp* warp = nullptr;
  State state = State::unstarted;
  const char* waits_in = nullptr;  ///< name of what it waits in
  Site site;                       ///< of it
  void* operands = nullptr;        ///< what it brought to the barrier it waits at
  std::unique_ptr<Fiber> fiber;
  AsyncCopies copies;
};

/// Lanes that have come to a warp function and wait for the rest of their mask.
struct WarpMeeting {
  const char* name = nullptr;
  std::uint32_t mask = 0, come = 0;
  Site site;
  const void* tag = nullptr;  ///< for the thread sanitizer
  void* operands[32] = {};
};

struct Warp {
  Thread* first = nullptr;
  std::uint32_t lanes = 0;            ///< those that exist: fewer than 32 in a ragged last warp
  std::uint32_t live = 0;             ///< those that have not ended
  std::vector<WarpMeeting> meetings;  ///< under way: one, or more where lanes work apart
  char tags[64] = {};
  unsigned next_tag = 0;
};

/// Threads that have come to a barrier.
struct Barrier {
  std::vector<Thread*> come;
  RoundTags tags;
};

struct SharedArray {
  const void* key;
  std::size_t offset, bytes;
};

struct Block {
  uint3 index{};
  int rank = 0;  ///< in the cluster
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[16];
  int barriers_in_use = 0;  ///< at which somebody waits
  std::vector<SharedArray> arrays;
  char* shared = nullptr;  ///< dynamic memory first, then the declared arrays as threads come to them
  std::size_t shared_used = 0;
  std::size_t array_bytes = 0;         ///< of the arrays alone, without the gaps between them
  int live = 0;                        ///< threads that have not ended
};

/// Threads that can go on, in the order in which they came to that. Holds all of a cluster without growing.
class ReadyQueue {
 public:
  void reserve(std::size_t threads);
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  void clear() { count_ = 0; }
  void push(Thread& t) { ring_[(first_ + count_++) & (ring_.size() - 1)] = &t; }
  Thread& pop();       ///< the first that came
  Thread& pop_last();  ///< the last that came
  /// Puts thread number i of the queue first, and the first in its place.
  void bring_forward(std::size_t i);

 private:
  std::vector<Thread*> ring_;  ///< a power of two of places
  std::size_t first_ = 0, count_ = 0;
};

/// Fibers that nobody runs on.
class FiberStock {
 public:
  std::unique_ptr<Fiber> take(const Thread& t);
  void give_back(Thread& t);  ///< the fiber of a thread that has ended
  void next_cluster(std::size_t threads);

 private:
  std::unique_ptr<Fiber>& place_of(const Thread& t);

  std::vector<std::unique_ptr<Fiber>> fibers_[2];
  std::size_t set_ = 0;
  unsigned made_ = 0;
};

/// Runs clusters one after the other on one thread of the host.
class Team {
 public:
  Team() = default;
  ~Team();
  /// Runs the cluster whose first block is `first`; empty text or what failed.
  std::string run(const Launch& launch, uint3 first, std::uint64_t seed);
  /// Around the clusters of one grid: what the host's thread did before is seen by them, and by it after what they did.
  void begin_grid() { order_release(&start_tag_); }
  void end_grid() { order_acquire(&end_tag_); }

  /// What the running thread's code asks for; see execution.h.
  void wait_at_barrier(const char* name, int id, int count, void* operands, void (*work)(void* const*, int), Site site);
  void wait_at_cluster(const char* name, Site site);
  void meet_in_warp(const char* name, std::uint32_t mask, void* operands, WarpFunction work, Site site);
  void* find_array(const void* key, std::size_t bytes, std::size_t alignment, Site site);
  void yield();
  [[noreturn]] void fail(const std::string& what, Site site);
  /// As fail(), from where no exception can be thrown: the thread stops where it stands, and nothing of its stack is
  /// destroyed. `line` is of the kernel's source, or null. The caller must own no memory.
  [[noreturn]] void stop(const char* line, const char* what);

  Thread& current() { return *current_; }
  std::string place() const { return place_of(*current_); }  ///< kernel, block and thread, for reports
  const Launch& launch() const { return *launch_; }
  std::vector<Block>& blocks() { return blocks_; }

 private:
  // ---- the cluster
  void set_up(uint3 first);
  void make_blocks(dim3 cluster, dim3 size);
  void set_up_memory(Block& block);
  void choose_order();
  bool one_warp_ahead() const { return seed_ % 2 == 1; }  ///< a kind of order, see next()

  // ---- who runs
  Thread* next();
  void become(Thread& t);
  void take_fiber(Thread& t);
  void drop_fibers();
  void suspend();
  void give_way();
  void wake(Thread& t);
  void run_threads();
  void end_thread(Thread& t);
  static void fiber_main(void* team);
  std::uint64_t random();

  // ---- what waits for ever
  void check_warp_ends(const Warp& warp);
  void check_whole_block(const char* name, const Barrier& barrier);
  void check_one_place(const char* name, const Barrier& barrier, const Site& site);
  WarpMeeting& join_meeting(Warp& warp, const char* name, std::uint32_t mask, const Site& site);
  std::string place_of(const Thread& t) const;
  std::string deadlock() const;

  const Launch* launch_ = nullptr;
  dim3 cluster_{0, 0, 0}, size_{0, 0, 0};  ///< that the blocks are made for
  std::vector<Block> blocks_;
  std::vector<Thread*> order_;  ///< of the threads' start
  bool in_order_ = false;       ///< order_ is that of their numbers
  std::size_t started_ = 0;
  ReadyQueue ready_;
  bool gave_way_ = false;  ///< the last to run did, so that others must come first
  Barrier cluster_barrier_;
  std::vector<void*> operands_;  ///< of the threads at a barrier, for its work
  FiberStock fibers_;
  Thread* current_ = nullptr;
  Context host_;
  std::uint64_t seed_ = 0, random_state_ = 0;
  int live_ = 0;
  char start_tag_ = 0, end_tag_ = 0;  ///< for the thread sanitizer
  std::string failure_;
  std::vector<char*> shared_memory_;
};

/// The team whose kernel code this thread of the host is in; null in the host's code.
extern constinit thread_local Team* running_team;

inline constexpr std::size_t kSharedBytes = 256 * 1024;  ///< of a block, with the gaps between its arrays

/// Of arrays that have dynamic memory behind them, which nvcc aligns to 1024 bytes.
constexpr std::size_t whole_kib(std::size_t arrays) { return (arrays + 1023) / 1024 * 1024; }

/// Why a block cannot have so much shared memory, as one sentence and its remedy; empty where it can.
std::string shared_memory_fault(std::size_t arrays, std::size_t dynamic, std::size_t limit);

}  // namespace levin::emulator
