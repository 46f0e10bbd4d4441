// Synchronisation of threads: barriers of blocks and clusters, and warp functions. As with team.cpp, the thread
// sanitizer does not instrument this compile unit.

#include "msan.h"
#include "poison.h"
#include "team.h"

#include <bit>
#include <cstring>

namespace levin::emulator {

namespace {

bool same_text(const char* a, const char* b) { return a == b || std::strcmp(a, b) == 0; }

bool same_place(const Site& a, const Site& b) {
  return a.line() == b.line() && a.column() == b.column() && same_text(a.file_name(), b.file_name());
}

}  // namespace

// ---- barriers

void Team::wait_at_barrier(const char* name, int id, int count, void* operands, void (*work)(void* const*, int),
                           Site site) {
  const Unwatched unwatched;
  Thread& t = *current_;
  Block& b = *t.block;
  if (id < 0 || id > 15) fail(std::string(name) + ": barrier " + std::to_string(id) + " does not exist: 0 to 15", site);
  if (observer) observer->on_barrier(name, site);
  Barrier& barrier = b.barriers[id];
  const bool whole = count == 0;
  if (barrier.come.empty()) {
    ++b.barriers_in_use;
  } else if (whole) {
    check_one_place(name, barrier, site);
  }
  barrier.come.push_back(&t);
  t.operands = operands;
  t.site = site;
  t.waits_in = name;
  const void* const tag = barrier.tags.now();
  order_release(tag);
  if (barrier.come.size() < (whole ? b.threads.size() : static_cast<std::size_t>(count))) {
    if (whole && barrier.come.size() == static_cast<std::size_t>(b.live)) {
      check_whole_block(name, barrier);
      throw KernelEnded{};
    }
    t.state = Thread::State::waiting;
    suspend();
  } else {
    if (work) {
      operands_.clear();
      for (const Thread* other : barrier.come) operands_.push_back(other->operands);
      do_for_all([&] { work(operands_.data(), static_cast<int>(operands_.size())); });
    }
    for (Thread* other : barrier.come) {
      if (other != &t) wake(*other);
    }
    barrier.come.clear();
    barrier.tags.next();
    --b.barriers_in_use;
    if (!t.copies.empty()) t.copies.progress(random());
    give_way();
  }
  order_acquire(tag);
}

/// Checks that all threads of a block wait in the same barrier of the source.
void Team::check_one_place(const char* name, const Barrier& barrier, const Site& site) {
  const Thread& other = *barrier.come.front();
  if (same_place(other.site, site)) return;
  fail(std::string("divergent barrier: this thread is in ") + name + " here, thread " + std::to_string(other.number) +
           " in " + other.waits_in + " at " + other.site.file_name() + ":" + std::to_string(other.site.line()),
       site);
}

void Team::wait_at_cluster(const char* name, Site site) {
  const Unwatched unwatched;
  Thread& t = *current_;
  Barrier& barrier = cluster_barrier_;
  barrier.come.push_back(&t);
  t.site = site;
  t.waits_in = name;
  const void* const tag = barrier.tags.now();
  order_release(tag);
  if (barrier.come.size() < blocks_.size() * t.block->threads.size()) {
    t.state = Thread::State::waiting;
    suspend();
  } else {
    for (Thread* other : barrier.come) {
      if (other != &t) wake(*other);
    }
    barrier.come.clear();
    barrier.tags.next();
  }
  order_acquire(tag);
}

// ---- warp functions

/// As on the GPU, __syncwarp orders the lanes' memory accesses, and functions that exchange operands order nothing
/// else.
void Team::meet_in_warp(const char* name, std::uint32_t mask, void* operands, WarpFunction work, Site site,
                        bool orders) {
  const Unwatched unwatched;
  Thread& t = *current_;
  const int own = t.number % 32;
  Warp& warp = *t.warp;
  if (!(mask >> own & 1)) fail(std::string(name) + ": lane " + std::to_string(own) + " is not in its own mask", site);
  // A partial last warp has fewer lanes; a mask of all lanes means those that exist.
  mask &= warp.lanes;
  if ((mask & ~warp.live) != 0) {
    fail(std::string(name) + ": the mask holds lanes that have ended", site);
  }
  if (observer) observer->on_warp_function(name, mask, site);
  WarpMeeting& meeting = join_meeting(warp, name, mask, site);
  meeting.come |= 1u << own;
  meeting.operands[own] = operands;
  const void* const tag = meeting.tag;
  if (orders) order_release(tag);
  t.site = site;
  t.waits_in = name;
  if (meeting.come != mask) {
    t.state = Thread::State::waiting;
    suspend();
  } else {
    if (work) do_for_all([&] { work(meeting.operands, mask); });
    for (std::uint32_t others = mask & ~(1u << own); others != 0; others &= others - 1) {
      wake(warp.first[std::countr_zero(others)]);
    }
    if (&meeting != &warp.meetings.back()) meeting = warp.meetings.back();
    warp.meetings.pop_back();
  }
  if (orders) order_acquire(tag);
}

/// Returns the meeting of these lanes: the one that other lanes started, or a new one.
WarpMeeting& Team::join_meeting(Warp& warp, const char* name, std::uint32_t mask, const Site& site) {
  for (WarpMeeting& m : warp.meetings) {
    if (m.mask != mask) continue;
    if (!same_text(m.name, name)) {
      fail(std::string(name) + ": lanes of the warp wait for this one in " + m.name + " at " + m.site.file_name() +
               ":" + std::to_string(m.site.line()),
           site);
    }
    return m;
  }
  WarpMeeting& m = warp.meetings.emplace_back();
  m.name = name;
  m.mask = mask;
  m.site = site;
  m.tag = &warp.tags[warp.next_tag++ % sizeof warp.tags];
  return m;
}

// ---- shared memory

std::string shared_memory_fault(std::size_t arrays, std::size_t dynamic, std::size_t limit) {
  if (dynamic > 0) arrays = whole_kib(arrays);
  if (arrays + dynamic <= limit) return {};
  std::string text = "shared memory: a block's arrays take " + std::to_string(arrays) + " bytes and the launch gives " +
                     std::to_string(dynamic) + ", together " + std::to_string(arrays + dynamic) + " of at most " +
                     std::to_string(limit) + ".";
  if (limit <= kUsualSharedBytes) text += " cudaFuncSetAttribute allows more.";
  return text;
}

void* Team::find_array(const void* key, std::size_t bytes, std::size_t alignment, Site site) {
  const Unwatched unwatched;
  Block& b = *current_->block;
  for (const SharedArray& a : b.arrays) {
    if (a.key == key) return b.shared + a.offset;
  }
  // The gap between two arrays stays poisoned for the address sanitizer.
  const std::size_t offset = (b.shared_used + 2 * alignment - 1) / alignment * alignment;
  const std::size_t arrays = (b.array_bytes + alignment - 1) / alignment * alignment + bytes;
  if (launch_->array_bytes) {
    std::size_t known = launch_->array_bytes->load(std::memory_order_relaxed);
    while (known < arrays && !launch_->array_bytes->compare_exchange_weak(known, arrays)) {
    }
  }
  const std::string fault = shared_memory_fault(arrays, launch_->shared_bytes, launch_->shared_limit);
  if (!fault.empty()) fail(fault, site);
  if (offset + bytes > kSharedBytes) fail("shared memory: the gaps between its arrays need too much", site);
  b.array_bytes = arrays;
  unpoison(b.shared + offset, bytes);
  std::memset(b.shared + offset, 0xff, bytes);
  mark_unwritten(b.shared + offset, bytes, origin_of("the array in shared memory", &site));
  b.arrays.push_back({key, offset, bytes});
  b.shared_used = offset + bytes;
  if (observer) observer->on_array(b.shared + offset, bytes, site);
  return b.shared + offset;
}

}  // namespace levin::emulator
