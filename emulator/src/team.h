#pragma once
// The blocks of one cluster (one block where there is no cluster) and the threads that run in them, one fiber each.

#include "fiber.h"

#include <levin/emulator/execution.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace levin::emulator {

/// Thrown through a kernel's code to end its thread; never leaves the fiber.
struct KernelEnded {};

struct Block;

/// One thread of the emulated device.
struct Thread {
  enum class State : unsigned char { unstarted, ready, waiting, ended };
  int number = 0;  ///< in its block, x fastest
  uint3 index{};
  Block* block = nullptr;
  State state = State::unstarted;
  const char* waits_in = nullptr;  ///< name of what it waits in
  Site site;
  std::uint32_t mask = 0;  ///< of the warp function it waits in
  std::unique_ptr<Fiber> fiber;
  AsyncCopies copies;
};

/// Lanes that have come to a warp function and wait for the rest of their mask.
struct WarpMeeting {
  const char* name = nullptr;
  std::uint32_t mask = 0, come = 0;
  Site site;
  void* operands[32] = {};
};

struct Warp {
  std::vector<WarpMeeting> meetings;
  std::uint32_t live = 0;
};

/// Threads that have come to a barrier.
struct Barrier {
  std::vector<Thread*> come;
  std::vector<void*> operands;
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
  std::vector<SharedArray> arrays;
  char* shared = nullptr;  ///< dynamic memory first, then the declared arrays as threads come to them
  std::size_t shared_used = 0;
  int live = 0;  ///< threads that have not ended
};

/// Runs clusters one after the other on one thread of the host.
class Team {
 public:
  Team();
  ~Team();
  /// Runs the cluster whose first block is `first`; empty text or what failed.
  std::string run(const Launch& launch, uint3 first, std::uint64_t seed);

  /// What the running thread's code asks for; see execution.h.
  void wait_at_barrier(const char* name, int id, int count, void* operands, void (*work)(void* const*, int), Site site);
  void wait_at_cluster(const char* name, Site site);
  void meet_in_warp(const char* name, std::uint32_t mask, void* operands, WarpFunction work, Site site);
  void* find_array(const void* key, std::size_t bytes, std::size_t alignment, Site site);
  void give_way();
  [[noreturn]] void fail(const std::string& what, Site site);

  Thread& current() { return *current_; }
  const Launch& launch() const { return *launch_; }
  std::vector<Block>& blocks() { return blocks_; }

  static Team* running();  ///< the team whose kernel code this thread of the host is in; null in the host's code

 private:
  void set_up(uint3 first);
  Thread* next();
  void resume(Thread& t);
  void suspend();
  void wake(Thread& t);
  void run_thread();
  void end_thread(Thread& t);
  void check_warp_ends(Block& block, Warp& warp);
  void check_whole_block(const char* name, const Barrier& barrier);
  std::string place_of(const Thread& t) const;
  std::string deadlock() const;
  std::uint64_t random();
  static void fiber_main(void* team);

  const Launch* launch_ = nullptr;
  std::vector<Block> blocks_;
  std::vector<Thread*> unstarted_;  ///< in reverse order of their start
  std::deque<Thread*> ready_;
  Barrier cluster_barrier_;
  std::vector<std::unique_ptr<Fiber>> idle_;
  Thread* current_ = nullptr;
  Context host_;
  std::uint64_t seed_ = 0, random_state_ = 0;
  int live_ = 0;
  std::string failure_;
  std::vector<char*> shared_memory_;
};

inline constexpr std::size_t kSharedBytes = 228 * 1024;  ///< of a block, as on sm_90

}  // namespace levin::emulator
