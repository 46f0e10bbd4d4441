#pragma once
// The blocks of one cluster (one block without clusters) and the threads that run in them, one fiber each.

#include "fiber.h"
#include "tsan.h"

#include <levin/emulator/bulk_copies.h>
#include <levin/emulator/execution.h>
#include <levin/emulator/observer.h>

#include <memory>
#include <string>
#include <vector>

namespace levin::emulator {

/// Thrown through a kernel's code to end its thread; it never leaves the fiber.
struct KernelEnded {};

struct Block;
struct Warp;

/// One thread of the emulated device.
struct Thread {
  enum class State : unsigned char { unstarted, ready, waiting, ended };
  int number = 0;  ///< index in its block, x fastest
  uint3 index{};
  Block* block = nullptr;
  Warp* warp = nullptr;
  State state = State::unstarted;
  const char* waits_in = nullptr;  ///< name of the function it waits in
  Site site;                       ///< its call site
  void* operands = nullptr;        ///< its operands of the barrier it waits at
  std::unique_ptr<Fiber> fiber;
  AsyncCopies copies;
  GroupProducts products;
};

/// Lanes that have arrived at a warp function and wait for the rest of their mask.
struct WarpMeeting {
  const char* name = nullptr;
  std::uint32_t mask = 0, come = 0;
  Site site;
  const void* tag = nullptr;  ///< tag for the thread sanitizer
  void* operands[32] = {};
};

struct Warp {
  Thread* first = nullptr;
  std::uint32_t lanes = 0;            ///< lanes that exist; fewer than 32 in a partial last warp
  std::uint32_t live = 0;             ///< lanes that have not ended
  std::vector<WarpMeeting> meetings;  ///< in progress; several if the lanes diverge
  char tags[64] = {};
  unsigned next_tag = 0;
};

/// Threads that have arrived at a barrier.
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
  int rank = 0;  ///< rank in the cluster
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  Barrier barriers[16];
  int barriers_in_use = 0;  ///< number of barriers with waiting threads
  std::vector<SharedArray> arrays;
  char* shared = nullptr;  ///< dynamic memory, then the declared arrays in the order in which threads reach them
  std::size_t shared_used = 0;
  std::size_t array_bytes = 0;         ///< bytes of the arrays without the gaps between them
  int live = 0;                        ///< threads that have not ended
  std::vector<BulkCopy> copies;        ///< of the copy engine, started and not completed
};

/// Returns the copies of the calling thread's block.
std::vector<BulkCopy>& bulk_copies();

/// Ready threads in the order in which they became ready. It has room for all threads of a cluster.
class ReadyQueue {
 public:
  void reserve(std::size_t threads);
  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  void clear() { count_ = 0; }
  void push(Thread& t) { ring_[(first_ + count_++) & (ring_.size() - 1)] = &t; }
  Thread& pop();       ///< removes the oldest
  Thread& pop_last();  ///< removes the newest
  /// Swaps thread number i of the queue with the first.
  void bring_forward(std::size_t i);

 private:
  std::vector<Thread*> ring_;  ///< its size is a power of two
  std::size_t first_ = 0, count_ = 0;
};

/// A pool of unused fibers.
class FiberStock {
 public:
  std::unique_ptr<Fiber> take(const Thread& t);
  void give_back(Thread& t);  ///< returns the fiber of a thread that has ended
  void next_cluster(std::size_t threads);

 private:
  std::unique_ptr<Fiber>& place_of(const Thread& t);

  std::vector<std::unique_ptr<Fiber>> fibers_[2];
  std::size_t set_ = 0;
  unsigned made_ = 0;
};

/// Runs clusters one after the other on one host thread.
class Team {
 public:
  Team() = default;
  ~Team();
  /// Runs the cluster whose first block is `first`. Returns the error, or an empty string.
  std::string run(const Launch& launch, uint3 first, std::uint64_t seed);
  /// Called around the clusters of one grid: order them after the host thread's earlier work and before its later work.
  void begin_grid() { order_release(&start_tag_); }
  void end_grid() { order_acquire(&end_tag_); }

  /// The operations of the running thread; see execution.h.
  void wait_at_barrier(const char* name, int id, int count, void* operands, void (*work)(void* const*, int), Site site);
  void wait_at_cluster(const char* name, Site site);
  void meet_in_warp(const char* name, std::uint32_t mask, void* operands, WarpFunction work, Site site, bool orders);
  void* find_array(const void* key, std::size_t bytes, std::size_t alignment, Site site);
  void yield();
  [[noreturn]] void fail(const std::string& what, Site site);
  /// Like fail(), where no exception can be thrown: the thread stops where it is, and nothing on its stack is
  /// destroyed. `line` is a line of the kernel's source, or null. The caller must own no memory.
  [[noreturn]] void stop(const char* line, const char* what);

  Thread& current() { return *current_; }
  std::string place() const { return place_of(*current_); }  ///< the kernel, block and thread, for reports
  const Launch& launch() const { return *launch_; }
  std::vector<Block>& blocks() { return blocks_; }

 private:
  // ---- the cluster
  void set_up(uint3 first);
  void make_blocks(dim3 cluster, dim3 size);
  void set_up_memory(Block& block);
  void choose_order();
  bool one_warp_ahead() const { return seed_ % 2 == 1; }  ///< see next()

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

  // ---- deadlocks
  void check_warp_ends(const Warp& warp);
  void check_whole_block(const char* name, const Barrier& barrier);
  void check_one_place(const char* name, const Barrier& barrier, const Site& site);
  WarpMeeting& join_meeting(Warp& warp, const char* name, std::uint32_t mask, const Site& site);
  std::string place_of(const Thread& t) const;
  std::string deadlock() const;

  const Launch* launch_ = nullptr;
  dim3 cluster_{0, 0, 0}, size_{0, 0, 0};  ///< the sizes that the blocks were made for
  std::vector<Block> blocks_;
  std::vector<Thread*> order_;  ///< order in which threads start
  bool in_order_ = false;       ///< true if order_ is by number
  std::size_t started_ = 0;
  ReadyQueue ready_;
  bool gave_way_ = false;  ///< the last thread yielded, so others must run first
  Barrier cluster_barrier_;
  std::vector<void*> operands_;  ///< operands of the threads at a barrier
  FiberStock fibers_;
  Thread* current_ = nullptr;
  Context host_;
  std::uint64_t seed_ = 0, random_state_ = 0;
  int live_ = 0;
  char start_tag_ = 0, end_tag_ = 0;  ///< tag for the thread sanitizer
  std::string failure_;
  std::vector<char*> shared_memory_;
};

/// The team whose kernel code this host thread runs; null in host code.
extern constinit thread_local Team* running_team;

/// Set by observe().
extern constinit Observer* observer;

/// Does the common work of a barrier or warp function.
template <class Work>
void do_for_all(Work work) {
  if (observer) observer->on_common_work(true);
  work();
  if (observer) observer->on_common_work(false);
}

inline constexpr std::size_t kSharedBytes = 256 * 1024;  ///< per block, including gaps between its arrays

/// Rounds the bytes of the arrays up to 1024, the alignment that nvcc gives the dynamic memory after them.
constexpr std::size_t whole_kib(std::size_t arrays) { return (arrays + 1023) / 1024 * 1024; }

/// Returns why a block cannot have this much shared memory, with the remedy; empty if it can.
std::string shared_memory_fault(std::size_t arrays, std::size_t dynamic, std::size_t limit);

}  // namespace levin::emulator
