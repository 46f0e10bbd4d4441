// Where threads wait for each other: barriers of blocks and clusters, and the functions of a warp.

#include "poison.h"
#include "team.h"
#include "tsan.h"

#include <algorithm>
#include <cstring>

namespace levin::emulator {

namespace {

bool same_place(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

void Team::wait_at_barrier(const char* name, int id, int count, void* operands, void (*work)(void* const*, int),
                           Site site) {
  Thread& t = *current_;
  Block& b = *t.block;
  if (id < 0 || id > 15) fail(std::string(name) + ": barrier " + std::to_string(id) + " does not exist: 0 to 15", site);
  Barrier& barrier = b.barriers[id];
  const bool whole = count == 0;
  const std::size_t needed = whole ? b.threads.size() : static_cast<std::size_t>(count);
  if (!barrier.come.empty() && whole) {
    const Thread& other = *barrier.come.front();
    if (!same_place(other.site, site)) {
      fail(std::string("divergent barrier: this thread is in ") + name + " here, thread " +
               std::to_string(other.number) + " in " + other.waits_in + " at " + other.site.file_name() + ":" +
               std::to_string(other.site.line()),
           site);
    }
  }
  barrier.come.push_back(&t);
  barrier.operands.push_back(operands);
  order_release(&barrier);
  t.site = site;
  t.waits_in = name;
  if (barrier.come.size() < needed) {
    if (whole && barrier.come.size() == static_cast<std::size_t>(b.live)) {
      check_whole_block(name, barrier);
      throw KernelEnded{};
    }
    t.state = Thread::State::waiting;
    suspend();
  } else {
    if (work) work(barrier.operands.data(), static_cast<int>(barrier.operands.size()));
    for (Thread* other : barrier.come) {
      if (other != &t) wake(*other);
    }
    barrier.come.clear();
    barrier.operands.clear();
    if (!t.copies.empty()) t.copies.progress(random());
    give_way();
  }
  order_acquire(&barrier);
}

void Team::wait_at_cluster(const char* name, Site site) {
  Thread& t = *current_;
  cluster_barrier_.come.push_back(&t);
  order_release(&cluster_barrier_);
  t.site = site;
  t.waits_in = name;
  if (cluster_barrier_.come.size() < blocks_.size() * t.block->threads.size()) {
    t.state = Thread::State::waiting;
    suspend();
  } else {
    for (Thread* other : cluster_barrier_.come) {
      if (other != &t) wake(*other);
    }
    cluster_barrier_.come.clear();
  }
  order_acquire(&cluster_barrier_);
}

void Team::meet_in_warp(const char* name, std::uint32_t mask, void* operands, WarpFunction work, Site site) {
  Thread& t = *current_;
  const int own = t.number % 32;
  Block& b = *t.block;
  Warp& warp = b.warps[static_cast<std::size_t>(t.number / 32)];
  if (!(mask >> own & 1)) fail(std::string(name) + ": lane " + std::to_string(own) + " is not in its own mask", site);
  // Lanes beyond a ragged last warp do not exist; a mask of all lanes means those that do.
  const int lanes = std::min(32, static_cast<int>(b.threads.size()) - t.number / 32 * 32);
  if (lanes < 32) mask &= (1u << lanes) - 1;
  if ((mask & ~warp.live) != 0) {
    fail(std::string(name) + ": the mask holds lanes that have ended", site);
  }
  std::size_t at = 0;
  while (at < warp.meetings.size() && warp.meetings[at].mask != mask) ++at;
  if (at == warp.meetings.size()) {
    for (const WarpMeeting& m : warp.meetings) {
      if ((m.mask & (1u << own)) != 0) {
        fail(std::string(name) + ": lanes of the warp wait for this one in " + m.name + " at " + m.site.file_name() +
                 ":" + std::to_string(m.site.line()) + " with another mask",
             site);
      }
    }
    warp.meetings.push_back({});
    warp.meetings[at].name = name;
    warp.meetings[at].mask = mask;
    warp.meetings[at].site = site;
  }
  WarpMeeting& meeting = warp.meetings[at];
  if (std::strcmp(meeting.name, name) != 0) {
    fail(std::string(name) + ": lanes of the warp wait for this one in " + meeting.name + " at " +
             meeting.site.file_name() + ":" + std::to_string(meeting.site.line()),
         site);
  }
  meeting.come |= 1u << own;
  meeting.operands[own] = operands;
  order_release(&warp);
  t.site = site;
  t.waits_in = name;
  if (meeting.come != mask) {
    t.state = Thread::State::waiting;
    suspend();
  } else {
    const WarpMeeting whole = meeting;
    warp.meetings.erase(warp.meetings.begin() + static_cast<std::ptrdiff_t>(at));
    if (work) work(whole.operands, mask);
    const std::size_t base = static_cast<std::size_t>(t.number / 32 * 32);
    for (int lane = 0; lane < 32; ++lane) {
      if (lane != own && (mask >> lane & 1)) wake(b.threads[base + static_cast<std::size_t>(lane)]);
    }
  }
  order_acquire(&warp);
}

void* Team::find_array(const void* key, std::size_t bytes, std::size_t alignment, Site site) {
  Block& b = *current_->block;
  for (const SharedArray& a : b.arrays) {
    if (a.key == key) return b.shared + a.offset;
  }
  // The gap between two arrays stays poisoned for the address sanitizer.
  const std::size_t offset = (b.shared_used + 2 * alignment - 1) / alignment * alignment;
  if (offset + bytes > kSharedBytes) {
    fail("shared memory: " + std::to_string(offset + bytes) + " bytes are asked for, a block has " +
             std::to_string(kSharedBytes),
         site);
  }
  unpoison(b.shared + offset, bytes);
  std::memset(b.shared + offset, 0xff, bytes);
  b.arrays.push_back({key, offset, bytes});
  b.shared_used = offset + bytes;
  return b.shared + offset;
}

}  // namespace levin::emulator
