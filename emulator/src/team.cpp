// The scheduler: which thread runs next, how threads begin and end. This compile unit is not instrumented for the
// thread sanitizer, to which the order of fibers must not look like synchronisation.

#include "team.h"
#include "poison.h"
#include "tsan.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace levin::emulator {

namespace {

thread_local Team* t_running = nullptr;
const char kGridTag = 0;  // orders the host before all threads of a grid and these before the host

std::uint64_t mix(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

char* new_shared_memory() {
  void* p = mmap(nullptr, kSharedBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<char*>(p);
}

}  // namespace

Team::Team() = default;

Team::~Team() {
  for (char* p : shared_memory_) {
    unpoison(p, kSharedBytes);
    munmap(p, kSharedBytes);
  }
}

Team* Team::running() { return t_running; }

std::uint64_t Team::random() { return seed_ == 0 ? 0 : mix(random_state_++ ^ seed_); }

std::string Team::run(const Launch& launch, uint3 first, std::uint64_t seed) {
  launch_ = &launch;
  seed_ = seed;
  random_state_ = mix(first.x + (std::uint64_t{first.y} << 20) + (std::uint64_t{first.z} << 40));
  failure_.clear();
  set_up(first);
  blockDim = launch.block;
  gridDim = launch.grid;
  order_release(&kGridTag);
  t_running = this;
  while (live_ > 0 && failure_.empty()) {
    Thread* t = next();
    if (!t) {
      failure_ = deadlock();
      break;
    }
    resume(*t);
  }
  t_running = nullptr;
  order_acquire(&kGridTag);
  for (Block& b : blocks_) {
    for (Thread& t : b.threads) {
      if (!t.fiber) continue;  // it was stopped in the middle: nothing on its stack is needed again
      t.fiber->abandon();
      idle_.push_back(std::move(t.fiber));
    }
  }
#if defined(LEVIN_EMULATOR_TSAN)
  for (auto& f : idle_) f->abandon();  // a new identity for every block: races between blocks show too
#endif
  ready_.clear();
  return std::exchange(failure_, {});
}

void Team::set_up(uint3 first) {
  const dim3 cluster = launch_->cluster, size = launch_->block;
  const std::size_t blocks = std::size_t{cluster.x} * cluster.y * cluster.z;
  const int threads = static_cast<int>(size.x * size.y * size.z), warps = (threads + 31) / 32;
  blocks_.resize(blocks);
  while (shared_memory_.size() < blocks) shared_memory_.push_back(new_shared_memory());
  unstarted_.clear();
  live_ = 0;
  for (std::size_t rank = 0; rank < blocks; ++rank) {
    Block& b = blocks_[rank];
    const unsigned r = static_cast<unsigned>(rank);
    b.index = {first.x + r % cluster.x, first.y + r / cluster.x % cluster.y, first.z + r / (cluster.x * cluster.y)};
    b.rank = static_cast<int>(rank);
    b.live = threads;
    b.arrays.clear();
    b.shared = shared_memory_[rank];
    b.shared_used = launch_->shared_bytes;
    unpoison(b.shared, b.shared_used);
    std::memset(b.shared, 0xff, b.shared_used);
    poison(b.shared + b.shared_used, kSharedBytes - b.shared_used);
    for (Barrier& barrier : b.barriers) barrier = {};
    if (b.threads.size() != static_cast<std::size_t>(threads)) {
      b.threads = std::vector<Thread>(static_cast<std::size_t>(threads));
      b.warps.resize(static_cast<std::size_t>(warps));
    }
    for (int w = 0; w < warps; ++w) {
      Warp& warp = b.warps[static_cast<std::size_t>(w)];
      const int lanes = std::min(32, threads - 32 * w);
      warp.meetings.clear();
      warp.live = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    }
    for (int n = 0; n < threads; ++n) {
      Thread& t = b.threads[static_cast<std::size_t>(n)];
      const unsigned u = static_cast<unsigned>(n);
      t.number = n;
      t.index = {u % size.x, u / size.x % size.y, u / (size.x * size.y)};
      t.block = &b;
      t.state = Thread::State::unstarted;
      t.copies.clear();
      unstarted_.push_back(&t);
    }
    live_ += threads;
  }
  cluster_barrier_ = {};
  std::reverse(unstarted_.begin(), unstarted_.end());
  if (seed_ == 0) return;
  for (std::size_t i = unstarted_.size(); i > 1; --i) std::swap(unstarted_[i - 1], unstarted_[random() % i]);
}

Thread* Team::next() {
  const bool start = !unstarted_.empty() && (ready_.empty() || seed_ == 0 || random() % 4 != 0);
  if (start) {
    Thread* t = unstarted_.back();
    unstarted_.pop_back();
    return t;
  }
  if (ready_.empty()) return nullptr;
  if (seed_ != 0 && ready_.size() > 1) std::swap(ready_.front(), ready_[random() % ready_.size()]);
  Thread* t = ready_.front();
  ready_.pop_front();
  return t;
}

void Team::resume(Thread& t) {
  current_ = &t;
  threadIdx = t.index;
  blockIdx = t.block->index;
  if (t.state == Thread::State::unstarted) {
    if (idle_.empty()) idle_.push_back(std::make_unique<Fiber>());
    t.fiber = std::move(idle_.back());
    idle_.pop_back();
    t.fiber->prepare(&Team::fiber_main, this);
  }
  t.state = Thread::State::ready;
  if (!t.copies.empty()) t.copies.progress(random());
  switch_context(host_, t.fiber->context);
  if (t.state == Thread::State::ended) idle_.push_back(std::move(t.fiber));
  current_ = nullptr;
}

void Team::suspend() {
  Thread& t = *current_;
  switch_context(t.fiber->context, host_);
}

void Team::wake(Thread& t) {
  t.state = Thread::State::ready;
  t.waits_in = nullptr;
  ready_.push_back(&t);
}

void Team::give_way() {
  wake(*current_);
  suspend();
}

void Team::fiber_main(void* team) { static_cast<Team*>(team)->run_thread(); }

void Team::run_thread() {
  fiber_entered(host_);
  Thread& t = *current_;
  order_acquire(&kGridTag);
  try {
    launch_->body(launch_->context);
    t.copies.wait_all();
  } catch (const KernelEnded&) {
  } catch (const std::exception& e) {
    if (failure_.empty()) failure_ = place_of(t) + ": the kernel threw an exception: " + e.what();
  }
  order_release(&kGridTag);
  end_thread(t);
  suspend();
  __builtin_unreachable();
}

void Team::end_thread(Thread& t) {
  t.state = Thread::State::ended;
  Block& b = *t.block;
  --b.live;
  --live_;
  Warp& warp = b.warps[static_cast<std::size_t>(t.number / 32)];
  warp.live &= ~(1u << (t.number % 32));
  if (failure_.empty()) {
    check_warp_ends(b, warp);
    for (const Barrier& barrier : b.barriers) {
      if (!barrier.come.empty() && barrier.come.size() == static_cast<std::size_t>(b.live)) {
        check_whole_block(barrier.come.front()->waits_in, barrier);
      }
    }
  }
}

std::string Team::place_of(const Thread& t) const {
  const auto triple = [](uint3 v) {
    return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
  };
  return std::string("kernel ") + launch_->kernel + ", block " + triple(t.block->index) + ", thread " + triple(t.index);
}

namespace {
std::string text_of(const Site& site) { return std::string(site.file_name()) + ":" + std::to_string(site.line()); }
}  // namespace

void Team::fail(const std::string& what, Site site) {
  if (failure_.empty()) failure_ = place_of(*current_) + ", at " + text_of(site) + ": " + what;
  throw KernelEnded{};
}

/// Lanes wait for one that ended: they would wait for ever.
void Team::check_warp_ends(Block& block, Warp& warp) {
  for (const WarpMeeting& m : warp.meetings) {
    const std::uint32_t missing = m.mask & ~m.come & ~warp.live;
    if (missing == 0) continue;
    int lane = 0;
    while (!(missing >> lane & 1)) ++lane;
    int waiting = 0;
    while (!(m.come >> waiting & 1)) ++waiting;
    const int base = static_cast<int>(&warp - block.warps.data()) * 32;
    failure_ = place_of(block.threads[static_cast<std::size_t>(base + waiting)]) + ", at " + text_of(m.site) + ": " +
               m.name + " waits for lane " + std::to_string(lane) + ", which has ended";
    return;
  }
}

/// All threads that live have come to a barrier of the whole block, but others ended without it.
void Team::check_whole_block(const char* name, const Barrier& barrier) {
  const Thread& t = *barrier.come.front();
  const int ended = static_cast<int>(t.block->threads.size()) - t.block->live;
  failure_ = place_of(t) + ", at " + text_of(t.site) + ": divergent barrier: " + std::to_string(ended) + " of the " +
             std::to_string(t.block->threads.size()) + " threads of the block ended without coming to this " + name;
}

std::string Team::deadlock() const {
  std::string text;
  int lines = 0;
  for (const Block& b : blocks_) {
    for (std::size_t i = 0; i < b.threads.size(); ++i) {
      const Thread& t = b.threads[i];
      if (t.state != Thread::State::waiting) continue;
      std::size_t last = i;  // neighbours that wait in the same place share a line
      while (last + 1 < b.threads.size() && b.threads[last + 1].state == Thread::State::waiting &&
             b.threads[last + 1].site.line() == t.site.line() && b.threads[last + 1].waits_in == t.waits_in) {
        ++last;
      }
      if (++lines <= 16) {
        text += "\n  " + place_of(t) + (last > i ? " and the next " + std::to_string(last - i) : std::string()) +
                " wait in " + t.waits_in + " at " + text_of(t.site);
      }
      i = last;
    }
  }
  return std::string("kernel ") + launch_->kernel + ": deadlock: no thread can go on" + text;
}

}  // namespace levin::emulator
