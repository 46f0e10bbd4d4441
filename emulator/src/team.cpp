// The scheduler of a team's threads. The thread sanitizer does not instrument this compile unit, because it must not
// take the order of fibers for synchronisation.

#include "team.h"
#include "msan.h"
#include "poison.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

constinit thread_local uint3 threadIdx{}, blockIdx{};
constinit thread_local dim3 blockDim{}, gridDim{};

namespace levin::emulator {

constinit thread_local Team* running_team = nullptr;
constinit Observer* observer = nullptr;

void observe(Observer* wanted) { observer = wanted; }

namespace {

#if defined(LEVIN_EMULATOR_ASAN) || defined(LEVIN_EMULATOR_TSAN)
constexpr bool kThroughHost = true;  // switches between fibers go through the host's stack
#else
constexpr bool kThroughHost = false;
#endif

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

std::string text_of(uint3 v) {
  return "(" + std::to_string(v.x) + ", " + std::to_string(v.y) + ", " + std::to_string(v.z) + ")";
}

std::string text_of(const Site& site) { return std::string(site.file_name()) + ":" + std::to_string(site.line()); }

bool same(const dim3& a, const dim3& b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

}  // namespace

// ---- ready threads

void ReadyQueue::reserve(std::size_t threads) {
  if (ring_.size() < threads) ring_.resize(std::bit_ceil(threads));
  first_ = count_ = 0;
}

Thread& ReadyQueue::pop() {
  Thread& t = *ring_[first_];
  first_ = (first_ + 1) & (ring_.size() - 1);
  --count_;
  return t;
}

Thread& ReadyQueue::pop_last() { return *ring_[(first_ + --count_) & (ring_.size() - 1)]; }

void ReadyQueue::bring_forward(std::size_t i) { std::swap(ring_[first_], ring_[(first_ + i) & (ring_.size() - 1)]); }

// ---- unused fibers

#if defined(LEVIN_EMULATOR_TSAN)
// To the sanitizer a fiber is a thread, and creating one takes 0.1 ms and 0.8 MiB. Therefore each thread of a cluster
// keeps its fiber, and unless there are too many threads the next cluster uses a second set. Races within a block and
// between neighbouring blocks are then detected.
constexpr std::size_t kWorthTwoSets = 512;

void FiberStock::next_cluster(std::size_t threads) { set_ = threads <= kWorthTwoSets && set_ == 0 ? 1 : 0; }

std::unique_ptr<Fiber>& FiberStock::place_of(const Thread& t) {
  auto& fibers = fibers_[set_];
  const std::size_t before = t.block->threads.size() * static_cast<std::size_t>(t.block->rank);
  const std::size_t place = before + static_cast<std::size_t>(t.number);
  if (fibers.size() <= place) fibers.resize(place + 1);
  return fibers[place];
}

std::unique_ptr<Fiber> FiberStock::take(const Thread& t) {
  std::unique_ptr<Fiber> fiber = std::move(place_of(t));
  return fiber ? std::move(fiber) : std::make_unique<Fiber>(made_++);
}

void FiberStock::give_back(Thread& t) { place_of(t) = std::move(t.fiber); }
#else
void FiberStock::next_cluster(std::size_t) {}

std::unique_ptr<Fiber> FiberStock::take(const Thread&) {
  auto& fibers = fibers_[set_];
  if (fibers.empty()) return std::make_unique<Fiber>(made_++);
  std::unique_ptr<Fiber> fiber = std::move(fibers.back());
  fibers.pop_back();
  return fiber;
}

void FiberStock::give_back(Thread& t) { fibers_[set_].push_back(std::move(t.fiber)); }
#endif

// ---- a cluster

Team::~Team() {
  for (char* p : shared_memory_) {
    unpoison(p, kSharedBytes);
    mark_written(p, kSharedBytes);
    munmap(p, kSharedBytes);
  }
}

std::uint64_t Team::random() { return seed_ == 0 ? 0 : mix(random_state_++ ^ seed_); }

std::string Team::run(const Launch& launch, uint3 first, std::uint64_t seed) {
  const Unwatched unwatched;
  launch_ = &launch;
  seed_ = seed;
  random_state_ = mix(first.x + (std::uint64_t{first.y} << 20) + (std::uint64_t{first.z} << 40));
  set_up(first);
  blockDim = launch.block;
  gridDim = launch.grid;
  running_team = this;
  while (live_ > 0 && failure_.empty()) {
    Thread* const t = next();
    if (!t) {
      failure_ = deadlock();
      break;
    }
    take_fiber(*t);
    become(*t);
    switch_context(host_, t->fiber->context, Leave::for_a_while);
    if (current_->state == Thread::State::ended) fibers_.give_back(*current_);
  }
  running_team = nullptr;
  forget_parameters();
  if (!failure_.empty()) drop_fibers();
  return std::exchange(failure_, {});
}

/// Drops the fibers of threads that were stopped midway and will not resume.
void Team::drop_fibers() {
  for (Block& b : blocks_) {
    for (Thread& t : b.threads) {
      if (!t.fiber) continue;
      t.fiber->release(&end_tag_);
      t.fiber.reset();
    }
  }
}

void Team::set_up(uint3 first) {
  const dim3 cluster = launch_->cluster;
  if (!same(cluster_, cluster) || !same(size_, launch_->block)) make_blocks(cluster, launch_->block);
  live_ = 0;
  for (Block& b : blocks_) {
    const unsigned r = static_cast<unsigned>(b.rank);
    b.index = {first.x + r % cluster.x, first.y + r / cluster.x % cluster.y, first.z + r / (cluster.x * cluster.y)};
    set_up_memory(b);
    for (Barrier& barrier : b.barriers) barrier.come.clear();
    b.barriers_in_use = 0;
    for (Warp& w : b.warps) {
      w.meetings.clear();
      w.live = w.lanes;
    }
    for (Thread& t : b.threads) {
      t.state = Thread::State::unstarted;
      t.copies.clear();
      t.products.clear();
    }
    b.live = static_cast<int>(b.threads.size());
    live_ += b.live;
  }
  cluster_barrier_.come.clear();
  ready_.clear();
  fibers_.next_cluster(order_.size());
  gave_way_ = false;
  choose_order();
}

/// Sets up the state of threads and warps that is the same for all clusters of this shape.
void Team::make_blocks(dim3 cluster, dim3 size) {
  const std::size_t threads = std::size_t{size.x} * size.y * size.z;
  cluster_ = cluster;
  size_ = size;
  blocks_.clear();
  blocks_.resize(std::size_t{cluster.x} * cluster.y * cluster.z);
  order_.clear();
  for (Block& b : blocks_) {
    b.rank = static_cast<int>(&b - blocks_.data());
    if (shared_memory_.size() <= static_cast<std::size_t>(b.rank)) shared_memory_.push_back(new_shared_memory());
    b.shared = shared_memory_[static_cast<std::size_t>(b.rank)];
    b.threads = std::vector<Thread>(threads);
    b.warps.resize((threads + 31) / 32);
    unsigned number = 0;
    for (Thread& t : b.threads) {
      t.number = static_cast<int>(number);
      t.index = {number % size.x, number / size.x % size.y, number / (size.x * size.y)};
      t.block = &b;
      t.warp = &b.warps[number / 32];
      if (number % 32 == 0) t.warp->first = &t;
      t.warp->lanes |= 1u << number % 32;
      order_.push_back(&t);
      ++number;
    }
  }
  in_order_ = true;
  ready_.reserve(order_.size());
}

/// Fills dynamic shared memory with bytes 0xff and poisons the rest for the address sanitizer.
void Team::set_up_memory(Block& b) {
  // The previous block is not ordered before this one.
  if (kThreadSanitizerOn && b.shared_used > 0) renew_pages(b.shared, kSharedBytes);
  b.arrays.clear();
  b.copies.clear();
  b.array_bytes = 0;
  b.shared_used = launch_->shared_bytes;
  unpoison(b.shared, b.shared_used);
  std::memset(b.shared, 0xff, b.shared_used);
  static const std::uint32_t origin = origin_of("dynamic shared memory");
  mark_unwritten(b.shared, b.shared_used, origin);
  poison(b.shared + b.shared_used, kSharedBytes - b.shared_used);
}

void Team::choose_order() {
  started_ = 0;
  if (!in_order_) {
    order_.clear();
    for (Block& b : blocks_) {
      for (Thread& t : b.threads) order_.push_back(&t);
    }
    in_order_ = true;
  }
  if (seed_ == 0) return;
  in_order_ = false;
  if (!one_warp_ahead()) {
    for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
    return;
  }
  for (std::size_t warps = order_.size() / 32; warps > 1; --warps) {
    const std::size_t other = random() % warps;
    for (std::size_t lane = 0; lane < 32; ++lane) std::swap(order_[32 * (warps - 1) + lane], order_[32 * other + lane]);
  }
}

// ---- scheduling

/// Returns the next thread to run. With seed 0 ready threads run in order, and new threads start when none is ready, so
/// a warp stays in the cache. Odd seeds let one warp run ahead of all others for as long as possible, which exposes a
/// missing barrier. Even seeds shuffle all.
Thread* Team::next() {
  const bool more = started_ < order_.size();
  const bool give_way = std::exchange(gave_way_, false);
  if (one_warp_ahead() && !(give_way && more)) {
    if (ready_.empty()) return more ? order_[started_++] : nullptr;
    return give_way ? &ready_.pop() : &ready_.pop_last();
  }
  if (more && (ready_.empty() || (seed_ == 0 ? give_way : random() % 4 != 0))) return order_[started_++];
  if (ready_.empty()) return nullptr;
  if (seed_ != 0 && ready_.size() > 1) ready_.bring_forward(random() % ready_.size());
  return &ready_.pop();
}

/// Makes the built-ins refer to this thread.
void Team::become(Thread& t) {
  current_ = &t;
  t.state = Thread::State::ready;
  threadIdx = t.index;
  blockIdx = t.block->index;
  if (!t.copies.empty()) t.copies.progress(random());
}

void Team::take_fiber(Thread& t) {
  if (t.fiber) return;
  t.fiber = fibers_.take(t);
  t.fiber->prepare(&Team::fiber_main, this);
  if (kThreadSanitizerOn) t.fiber->name(("threadIdx " + text_of(t.index)).c_str());
}

/// Lets others run until the current thread is woken and scheduled. Must be called within one Unwatched.
[[gnu::noinline]] void Team::suspend() {
  Thread& self = *current_;
  Thread* const t = kThroughHost || !failure_.empty() ? nullptr : next();
  if (t) {
    take_fiber(*t);
    become(*t);
    if (t == &self) return;
  }
  go_on_watching();
  switch_context(self.fiber->context, t ? t->fiber->context : host_, Leave::for_a_while);
  stop_watching();
}

void Team::wake(Thread& t) {
  t.state = Thread::State::ready;
  t.waits_in = nullptr;
  ready_.push(t);
}

void Team::give_way() {
  gave_way_ = true;
  wake(*current_);
  suspend();
}

void Team::yield() {
  const Unwatched unwatched;
  give_way();
}

void Team::fiber_main(void* team) { static_cast<Team*>(team)->run_threads(); }

/// The body of a fiber: runs one thread, and then on the same stack further threads as long as these are new.
void Team::run_threads() {
  fiber_entered(host_);
  for (;;) {
    Thread& t = *current_;
    order_acquire(&start_tag_);
    try {
      launch_->body(launch_->context);
      t.copies.wait_all();
    } catch (const KernelEnded&) {
    } catch (const std::exception& e) {
      if (failure_.empty()) failure_ = place_of(t) + ": the kernel threw an exception: " + e.what();
    }
    stop_watching();
    if (!t.products.empty() && failure_.empty())
      failure_ = place_of(t) + ": the kernel ended before it waited for its products of wgmma";
    end_thread(t);
    order_release(&end_tag_);
    go_on_watching();
    Thread* const after = kThroughHost || live_ == 0 || !failure_.empty() ? nullptr : next();
    Fiber& own = *t.fiber;
    if (!after) switch_context(own.context, host_, Leave::for_good);
    become(*after);
    if (after->fiber) {
      fibers_.give_back(t);
      switch_context(own.context, after->fiber->context, Leave::for_good);
    }
    after->fiber = std::move(t.fiber);
  }
}

void Team::end_thread(Thread& t) {
  if (observer) observer->on_end();
  t.state = Thread::State::ended;
  Block& b = *t.block;
  Warp& warp = *t.warp;
  --b.live;
  --live_;
  warp.live &= ~(1u << (t.number % 32));
  if (!failure_.empty()) return;
  if (b.live == 0 && !b.copies.empty())
    failure_ = place_of(t) + ": the block ended before a thread waited for its copies by cp.async.bulk.tensor";
  if (!warp.meetings.empty()) check_warp_ends(warp);
  if (b.barriers_in_use == 0) return;
  for (const Barrier& barrier : b.barriers) {
    if (!barrier.come.empty() && barrier.come.size() == static_cast<std::size_t>(b.live)) {
      check_whole_block(barrier.come.front()->waits_in, barrier);
    }
  }
}

std::string Team::place_of(const Thread& t) const {
  return std::string("kernel ") + launch_->kernel + ", block " + text_of(t.block->index) + ", thread " +
         text_of(t.index);
}

void Team::fail(const std::string& what, Site site) {
  const Unwatched unwatched;
  if (failure_.empty()) failure_ = place_of(*current_) + ", at " + text_of(site) + ": " + what;
  throw KernelEnded{};
}

void Team::stop(const char* line, const char* what) {
  stop_watching();
  if (failure_.empty()) failure_ = place_of(*current_) + (line ? std::string(", at ") + line : "") + ": " + what;
  go_on_watching();
  for (;;) switch_context(current_->fiber->context, host_, Leave::for_good);
}

/// Reports lanes that would wait forever for a lane that has ended.
void Team::check_warp_ends(const Warp& warp) {
  for (const WarpMeeting& m : warp.meetings) {
    const std::uint32_t missing = m.mask & ~m.come & ~warp.live;
    if (missing == 0) continue;
    int lane = 0;
    while (!(missing >> lane & 1)) ++lane;
    int waiting = 0;
    while (!(m.come >> waiting & 1)) ++waiting;
    failure_ = place_of(warp.first[waiting]) + ", at " + text_of(m.site) + ": " + m.name + " waits for lane " +
               std::to_string(lane) + ", which has ended";
    return;
  }
}

/// Reports threads that ended without reaching a barrier of the whole block at which all live threads wait.
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
      std::size_t last = i;  // neighbours that wait at the same place share a line
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
