// Block sizes are 64 bytes times 1, 2, 3, 4, then four sizes per power of two up to 2 MiB, and eight above, so that at
// most a quarter or an eighth is wasted. Nine eighths are common: the weight of a 3 x 3 convolution of 2^n channels.
// Small blocks go through a bounded thread-local cache, the others through bins behind one mutex. Free blocks form a
// linked list through their first word.

#include <levin/core/allocator.h>

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) (static_cast<void>(p), static_cast<void>(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) (static_cast<void>(p), static_cast<void>(n))
#endif

namespace levin::cpu_allocator {

namespace {

constexpr std::size_t kUnit = 64;
constexpr std::size_t kHuge = std::size_t{2} << 20;       // size of a huge page
constexpr std::size_t kLargest = std::size_t{1} << 43;    // 8 TiB: beyond this the packed counters would overflow
constexpr std::size_t kSmallClasses = 36;                 // up to 64 KiB
constexpr std::size_t kHugeClasses = 4 + 4 * 13;          // those from here on are above kHuge
constexpr std::size_t kClasses = kHugeClasses + 8 * 22;

constexpr std::size_t class_of(std::size_t bytes) {
  const std::size_t last = bytes == 0 ? 0 : (bytes - 1) / kUnit;  // number of units - 1
  if (last < 4) return last;
  const auto power = static_cast<std::size_t>(std::bit_width(last)) - 1;
  if (bytes > kHuge) return kHugeClasses + 8 * (power - 15) + (last >> (power - 3)) - 8;
  return 4 * (power - 1) + (last >> (power - 2)) - 4;
}

constexpr std::size_t class_bytes(std::size_t c) {
  if (c >= kHugeClasses) return (c % 8 + 9) * kUnit << ((c - kHugeClasses) / 8 + 12);
  return c < 4 ? (c + 1) * kUnit : (c % 4 + 5) * kUnit << (c / 4 - 1);
}
static_assert(class_bytes(kSmallClasses - 1) == 65536 && class_of(65536) == kSmallClasses - 1);
static_assert(class_bytes(class_of(257)) == 320 && class_bytes(class_of(1025)) == 1280);
static_assert(class_bytes(kHugeClasses - 1) == kHuge && class_of(kHuge) == kHugeClasses - 1);
static_assert(kHugeClasses % 8 == 0 && class_bytes(class_of(kHuge + 1)) == kHuge / 8 * 9);
static_assert(class_bytes(class_of(9 * kHuge)) == 9 * kHuge && class_of(kLargest) == kClasses - 1);

/// Returns the number of blocks of one class that a thread may cache.
constexpr int cache_limit(std::size_t c) {
  return static_cast<int>(std::clamp<std::size_t>((std::size_t{256} << 10) / class_bytes(c), 4, 128));
}

struct Block {
  Block* next;
};

struct Bin {
  Block* head = nullptr;
  int count = 0;
  void push(Block* b) {
    b->next = head;
    head = b;
    ++count;
  }
  Block* pop() {
    Block* b = head;
    head = b->next;
    --count;
    return b;
  }
};

/// The number of live blocks (upper 26 bits) and of live units (lower 38) in one word, so that one atomic operation
/// updates both.
constexpr std::uint64_t kOneBlock = std::uint64_t{1} << 38;
constexpr std::uint64_t units(std::uint64_t packed) { return packed & (kOneBlock - 1); }

struct Central {
  std::atomic<std::uint64_t> live{0};
  std::atomic<std::uint64_t> peak{0};       // units
  std::atomic<std::uint64_t> cap{~0ull};    // units
  std::atomic<std::size_t> reserved{0};
  std::atomic<std::size_t> system_allocations{0};
  std::atomic<bool> guards{false};
  std::atomic<std::size_t> guarded_blocks{0}, violations{0};
  std::mutex mutex;
  Bin bins[kClasses];
  std::unordered_map<void*, std::size_t> guarded;  // start of the user's memory, bytes requested
};

/// Never destroyed: tensors of static duration are freed after main.
Central& central() {
  static Central& c = *new Central;
  return c;
}

/// A thread's cache of blocks. It is trivially destructible, so that a block freed after the destructors of the thread
/// ran still finds it (closed).
struct Cache {
  Bin bins[kSmallClasses];
  enum class State : std::uint8_t { fresh, open, closed } state;
};
constinit thread_local Cache t_cache{};

/// Allocates a block from the system, with huge pages if it is large enough for one.
void* system_allocate(std::size_t size) {
  if (size < kHuge) return std::aligned_alloc(kUnit, size);
  void* raw = mmap(nullptr, size + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = (begin + kHuge - 1) / kHuge * kHuge;
  if (aligned > begin) munmap(raw, aligned - begin);
  if (const std::size_t tail = begin + kHuge - aligned) munmap(reinterpret_cast<void*>(aligned + size), tail);
  void* p = reinterpret_cast<void*>(aligned);
  madvise(p, size, MADV_HUGEPAGE);
  return p;
}

void system_free(void* p, std::size_t size) noexcept {
  ASAN_UNPOISON_MEMORY_REGION(p, size);
  if (size < kHuge) {
    std::free(p);
  } else {
    munmap(p, size);
  }
  central().reserved.fetch_sub(size, std::memory_order_relaxed);
}

/// Moves blocks from a thread's bin to the central bin until `keep` are left.
void spill(Bin& bin, std::size_t c, int keep) noexcept {
  Central& all = central();
  const std::lock_guard lock(all.mutex);
  while (bin.count > keep) all.bins[c].push(bin.pop());
}

void spill_all() noexcept {
  for (std::size_t c = 0; c < kSmallClasses; ++c) spill(t_cache.bins[c], c, 0);
}

struct CloseAtThreadExit {
  ~CloseAtThreadExit() {
    spill_all();
    t_cache.state = Cache::State::closed;
  }
};

/// True if this thread may cache blocks; the first call registers their release at thread exit.
bool cache_is_open() {
  if (t_cache.state == Cache::State::fresh) {
    static thread_local CloseAtThreadExit closer;
    static_cast<void>(&closer);
    t_cache.state = Cache::State::open;
  }
  return t_cache.state == Cache::State::open;
}

std::string human(std::size_t bytes) {
  constexpr const char* names[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  int unit = 0;
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.2f} {}", value, names[unit]);
}

[[noreturn]] void out_of_memory(std::size_t bytes, const char* why) {
  const MemoryStats s = stats();
  const std::uint64_t cap = central().cap.load();
  throw OutOfMemory(fmt::format(
      "[memory] cpu: {} asked for, {}: {} in {} live blocks (peak {}), {} taken from the system, cap {}. Use a smaller "
      "batch or model{}.",
      human(bytes), why, human(s.allocated), s.live_blocks, human(s.peak_allocated), human(s.reserved),
      cap == ~0ull ? "none" : human(cap * kUnit), cap == ~0ull ? "" : ", or raise the cap"));
}

/// Counts one more live block and returns the number of live units; throws OutOfMemory above the cap.
std::uint64_t count_in(std::size_t bytes, std::size_t size) {
  Central& all = central();
  const std::uint64_t step = kOneBlock + size / kUnit;
  const std::uint64_t now = units(all.live.fetch_add(step, std::memory_order_relaxed) + step);
  if (now > all.cap.load(std::memory_order_relaxed)) [[unlikely]] {
    all.live.fetch_sub(step, std::memory_order_relaxed);
    out_of_memory(bytes, "which the cap forbids");
  }
  return now;
}

/// Updates the peak. Called after the allocation succeeded, since a failed one must not count.
void raise_peak(std::uint64_t now) {
  std::atomic<std::uint64_t>& highest = central().peak;
  std::uint64_t peak = highest.load(std::memory_order_relaxed);
  while (now > peak && !highest.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

void count_out(std::size_t size) noexcept {
  central().live.fetch_sub(kOneBlock + size / kUnit, std::memory_order_relaxed);
}

/// Allocates from the system, and tries again after returning the cached blocks to it.
void* allocate_from_system(std::size_t bytes, std::size_t size) {
  Central& all = central();
  void* p = system_allocate(size);
  if (!p) {
    empty_cache();
    p = system_allocate(size);
  }
  if (!p) {
    count_out(size);
    out_of_memory(bytes, "which the system refused");
  }
  all.reserved.fetch_add(size, std::memory_order_relaxed);
  all.system_allocations.fetch_add(1, std::memory_order_relaxed);
  return p;
}

void* allocate_slowly(std::size_t bytes, std::size_t c) {
  Central& all = central();
  {
    const std::lock_guard lock(all.mutex);
    Bin& bin = all.bins[c];
    if (c < kSmallClasses && cache_is_open()) {
      for (int wanted = cache_limit(c) / 2; wanted > 0 && bin.count > 1; --wanted) t_cache.bins[c].push(bin.pop());
    }
    if (bin.head) return bin.pop();
  }
  return allocate_from_system(bytes, class_bytes(c));
}

// Guarded blocks have a zone with a known pattern before and after them, and are never cached.
constexpr std::size_t kZone = 64;
constexpr int kPattern = 0xA5;

std::size_t guarded_total(std::size_t bytes) { return class_bytes(class_of(bytes + 2 * kZone)); }

void* allocate_guarded(std::size_t bytes) {
  Central& all = central();
  const std::size_t total = guarded_total(bytes);
  auto* raw = static_cast<std::byte*>(allocate_from_system(bytes, total));
  std::memset(raw, kPattern, kZone);
  std::memset(raw + kZone + bytes, kPattern, total - kZone - bytes);
  const std::lock_guard lock(all.mutex);
  all.guarded.emplace(raw + kZone, bytes);
  all.guarded_blocks.fetch_add(1);
  return raw + kZone;
}

/// Frees a guarded block; returns false if `p` is an ordinary block.
bool free_guarded(void* p) noexcept {
  Central& all = central();
  std::size_t bytes = 0;
  {
    const std::lock_guard lock(all.mutex);
    const auto found = all.guarded.find(p);
    if (found == all.guarded.end()) return false;
    bytes = found->second;
    all.guarded.erase(found);
    all.guarded_blocks.fetch_sub(1);
  }
  std::byte* raw = static_cast<std::byte*>(p) - kZone;
  const std::size_t total = guarded_total(bytes);
  const auto intact = [](std::byte b) { return b == std::byte{kPattern}; };
  if (!std::all_of(raw, raw + kZone, intact) || !std::all_of(raw + kZone + bytes, raw + total, intact)) {
    all.violations.fetch_add(1);
  }
  count_out(total);
  system_free(raw, total);
  return true;
}

}  // namespace

void* allocate(std::size_t bytes) {
  if (bytes > kLargest) [[unlikely]] out_of_memory(bytes, "more than any machine has");
  if (central().guards.load(std::memory_order_relaxed)) [[unlikely]] {
    const std::uint64_t live = count_in(bytes, guarded_total(bytes));
    void* const guarded = allocate_guarded(bytes);
    raise_peak(live);
    return guarded;
  }
  const std::size_t c = class_of(bytes);
  const std::uint64_t live = count_in(bytes, class_bytes(c));
  void* p = c < kSmallClasses && t_cache.bins[c].head ? t_cache.bins[c].pop() : allocate_slowly(bytes, c);
  raise_peak(live);
  ASAN_UNPOISON_MEMORY_REGION(p, class_bytes(c));
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(p) + (bytes + 7) / 8 * 8, class_bytes(c) - (bytes + 7) / 8 * 8);
  return p;
}

void free(void* p, std::size_t bytes) noexcept {
  if (!p) return;
  Central& all = central();
  if (all.guarded_blocks.load(std::memory_order_relaxed) > 0 && free_guarded(p)) return;
  const std::size_t c = class_of(bytes);
  count_out(class_bytes(c));
  ASAN_UNPOISON_MEMORY_REGION(p, sizeof(Block));
  // The first words stay readable: they hold the list of free blocks, which the leak checker follows.
  ASAN_POISON_MEMORY_REGION(static_cast<std::byte*>(p) + 16, class_bytes(c) - 16);
  auto* block = static_cast<Block*>(p);
  if (c < kSmallClasses && cache_is_open()) {
    Bin& bin = t_cache.bins[c];
    if (bin.count >= cache_limit(c)) [[unlikely]] spill(bin, c, cache_limit(c) / 2);
    bin.push(block);
    return;
  }
  const std::lock_guard lock(all.mutex);
  all.bins[c].push(block);
}

MemoryStats stats() {
  const Central& all = central();
  const std::uint64_t live = all.live.load(std::memory_order_relaxed);
  MemoryStats s;
  s.allocated = units(live) * kUnit;
  s.live_blocks = live / kOneBlock;
  s.peak_allocated = all.peak.load(std::memory_order_relaxed) * kUnit;
  s.reserved = all.reserved.load(std::memory_order_relaxed);
  s.system_allocations = all.system_allocations.load(std::memory_order_relaxed);
  return s;
}

void reset_peak() { central().peak.store(units(central().live.load())); }

void empty_cache() {
  Central& all = central();
  spill_all();
  const std::lock_guard lock(all.mutex);
  for (std::size_t c = 0; c < kClasses; ++c) {
    while (all.bins[c].head) system_free(all.bins[c].pop(), class_bytes(c));
  }
}

void set_cap(std::size_t bytes) { central().cap.store(bytes == 0 ? ~0ull : bytes / kUnit); }

void set_guards(bool on) { central().guards.store(on); }

std::size_t guard_violations() { return central().violations.load(); }

}  // namespace levin::cpu_allocator
