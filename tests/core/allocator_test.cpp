#include <doctest/doctest.h>
#include <levin/core/allocator.h>
#include <levin/core/storage.h>
#include <levin/core/tensor.h>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

using namespace levin;

TEST_CASE("blocks are aligned, disjoint and counted") {
  const MemoryStats before = cpu_allocator::stats();
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  for (const std::size_t bytes : {0u, 1u, 63u, 64u, 65u, 256u, 257u, 1000u, 4096u, 65536u, 65537u, 1000000u, 2097152u,
                                  2097153u, 5000000u}) {
    auto* p = static_cast<std::byte*>(cpu_allocator::allocate(bytes));
    REQUIRE(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    std::memset(p, static_cast<int>(blocks.size()), bytes);
    blocks.emplace_back(p, bytes);
  }
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    for (std::size_t k = 0; k < blocks[i].second; k += 61) REQUIRE(blocks[i].first[k] == static_cast<std::byte>(i));
  }
  const MemoryStats during = cpu_allocator::stats();
  CHECK(during.live_blocks == before.live_blocks + blocks.size());
  CHECK(during.allocated >= before.allocated + 10000000);
  CHECK(during.allocated <= before.allocated + 13200000);  // at most a quarter more than asked for
  CHECK(during.peak_allocated >= during.allocated);
  CHECK(during.reserved >= during.allocated);
  for (const auto& [p, bytes] : blocks) cpu_allocator::free(p, bytes);
  CHECK(cpu_allocator::stats().allocated == before.allocated);
  CHECK(cpu_allocator::stats().live_blocks == before.live_blocks);
}

TEST_CASE("a repeated step allocates nothing from the system") {
  const auto step = [] {
    std::vector<Tensor> tensors;
    for (int64_t n = 1; n < 3000000; n *= 3) tensors.push_back(empty({n}));
    for (int i = 0; i < 300; ++i) tensors.push_back(empty({16, 16}));
  };
  step();
  step();
  const std::size_t asked = cpu_allocator::stats().system_allocations;
  for (int i = 0; i < 5; ++i) step();
  CHECK(cpu_allocator::stats().system_allocations == asked);
}

TEST_CASE("a freed block is reused, and empty_cache returns it to the system") {
  void* p = cpu_allocator::allocate(3000000);
  cpu_allocator::free(p, 3000000);
  const std::size_t cached = cpu_allocator::stats().reserved;
  void* q = cpu_allocator::allocate(2900000);
  CHECK(p == q);
  CHECK(cpu_allocator::stats().reserved == cached);
  cpu_allocator::free(q, 2900000);
  cpu_allocator::empty_cache();
  CHECK(cpu_allocator::stats().reserved <= cached - 3000000);
}

TEST_CASE("the peak is the maximum since its reset") {
  cpu_allocator::reset_peak();
  const std::size_t before = cpu_allocator::stats().allocated;
  CHECK(cpu_allocator::stats().peak_allocated == before);
  { const Tensor t = empty({1 << 20}); }
  CHECK(cpu_allocator::stats().peak_allocated == before + (4u << 20));
  cpu_allocator::reset_peak();
  CHECK(cpu_allocator::stats().peak_allocated == before);
}

TEST_CASE("the cap is enforced, and a refused request leaves no trace") {
  const MemoryStats before = cpu_allocator::stats();
  cpu_allocator::set_cap(before.allocated + (8u << 20));
  const Tensor fits = empty({1 << 20});
  std::string text;
  try {
    empty({2 << 20});
  } catch (const OutOfMemory& e) {
    text = e.what();
  }
  CHECK(text.starts_with("[memory] cpu: 8.00 MiB asked for, which the cap forbids:"));
  CHECK(text.find("live blocks (peak ") != std::string::npos);
  CHECK(cpu_allocator::stats().allocated == before.allocated + (4u << 20));
  CHECK(empty({1 << 20}).defined());
  cpu_allocator::set_cap(0);
  CHECK(empty({2 << 20}).defined());
}

TEST_CASE("a request for more than the machine has is an error, not a crash") {
  CHECK_THROWS_AS(empty({int64_t{1} << 44}), OutOfMemory);
  cpu_allocator::reset_peak();
  const std::size_t before = cpu_allocator::stats().allocated;
  CHECK_THROWS_AS(empty({int64_t{1} << 40}), OutOfMemory);
  CHECK(cpu_allocator::stats().peak_allocated == before);
  CHECK_THROWS_AS(empty({int64_t{1} << 40, int64_t{1} << 40}), ShapeError);
  CHECK(empty({4}).defined());
}

TEST_CASE("guards detect writes beyond a block's ends") {
  const std::size_t before = cpu_allocator::guard_violations();
  cpu_allocator::set_guards(true);
  auto* whole = static_cast<std::byte*>(cpu_allocator::allocate(100));
  std::memset(whole, 1, 100);
  cpu_allocator::free(whole, 100);
  CHECK(cpu_allocator::guard_violations() == before);
  for (const std::ptrdiff_t at : {-64, -1, 100, 163}) {
    auto* p = static_cast<std::byte*>(cpu_allocator::allocate(100));
    CHECK(reinterpret_cast<std::uintptr_t>(p) % 64 == 0);
    p[at] = std::byte{0};
    cpu_allocator::free(p, 100);
  }
  void* across = cpu_allocator::allocate(10);
  cpu_allocator::set_guards(false);
  void* plain = cpu_allocator::allocate(10);
  cpu_allocator::free(across, 10);
  cpu_allocator::free(plain, 10);
  CHECK(cpu_allocator::guard_violations() == before + 4);
}

TEST_CASE("blocks move between threads and outlive them") {
  const MemoryStats before = cpu_allocator::stats();
  std::vector<std::pair<std::uint32_t*, std::size_t>> blocks(4000);
  const auto over = [&](auto f) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (std::size_t i = t; i < blocks.size(); i += 4) f(i);
      });
    }
    for (auto& t : threads) t.join();
  };
  std::atomic<int> wrong{0};
  for (int round = 0; round < 5; ++round) {
    over([&](std::size_t i) {
      const std::size_t bytes = 4 + i * 37 % 9000;
      blocks[i] = {static_cast<std::uint32_t*>(cpu_allocator::allocate(bytes)), bytes};
      *blocks[i].first = static_cast<std::uint32_t>(i);
    });
    over([&](std::size_t i) {
      const auto& [p, bytes] = blocks[(i + 1) % blocks.size()];
      if (*p != (i + 1) % blocks.size()) ++wrong;
      cpu_allocator::free(p, bytes);
    });
  }
  CHECK(wrong == 0);
  CHECK(cpu_allocator::stats().allocated == before.allocated);
  CHECK(cpu_allocator::stats().live_blocks == before.live_blocks);
}

TEST_CASE("a storage lives as long as its last view") {
  const int64_t live = Storage::live_count();
  int released = 0;
  float memory[6] = {};
  {
    const Tensor t = from_blob(memory, {2, 3}, {}, [&] { ++released; });
    const Tensor view = alias(t, {3}, {1}, 3);
    CHECK(Storage::live_count() == live + 1);
    CHECK(view.raw_data() == memory + 3);
  }
  CHECK(released == 1);
  CHECK(Storage::live_count() == live);
}

TEST_CASE("every block from the system is counted, guarded blocks with their zones") {
  const MemoryStats before = cpu_allocator::stats();
  const std::size_t unusual = 777 << 20;  // a size that no other test leaves in the cache
  void* p = cpu_allocator::allocate(unusual);
  CHECK(cpu_allocator::stats().system_allocations == before.system_allocations + 1);
  cpu_allocator::free(p, unusual);
  cpu_allocator::empty_cache();
  const std::size_t reserved = cpu_allocator::stats().reserved;
  cpu_allocator::set_guards(true);
  void* guarded = cpu_allocator::allocate(100);
  cpu_allocator::set_guards(false);
  const MemoryStats during = cpu_allocator::stats();
  CHECK(during.live_blocks == before.live_blocks + 1);
  CHECK(during.allocated >= before.allocated + 100 + 2 * 64);
  CHECK(during.reserved == reserved + (during.allocated - before.allocated));
  cpu_allocator::free(guarded, 100);
  CHECK(cpu_allocator::stats().allocated == before.allocated);
  CHECK(cpu_allocator::stats().live_blocks == before.live_blocks);
  CHECK(cpu_allocator::stats().reserved == reserved);
}

TEST_CASE("an out-of-memory error reports live, peak and reserved memory") {
  cpu_allocator::empty_cache();
  cpu_allocator::reset_peak();
  {
    const Tensor passing = empty({5 << 20});  // 20 MiB, which stay in the cache
  }
  const Tensor live = empty({3 << 20});
  const MemoryStats s = cpu_allocator::stats();
  REQUIRE(s.reserved > s.allocated + (10u << 20));
  cpu_allocator::set_cap(s.allocated + (1u << 20));
  std::string text;
  try {
    empty({2 << 20});
  } catch (const OutOfMemory& e) {
    text = e.what();
  }
  cpu_allocator::set_cap(0);
  const auto mib = [](std::size_t bytes) { return fmt::format("{:.2f} MiB", static_cast<double>(bytes) / (1 << 20)); };
  CHECK_MESSAGE(text.find(fmt::format("the cap forbids: {} in {} live blocks (peak {}), {} taken from the system",
                                      mib(s.allocated), s.live_blocks, mib(s.peak_allocated), mib(s.reserved))) !=
                    std::string::npos,
                text);
}

TEST_CASE("blocks that a thread has freed are reused by others, while it lives and after its end") {
  cpu_allocator::empty_cache();
  constexpr std::size_t bytes = 1000, blocks = 4000;
  const auto take_all = [] {
    std::vector<void*> taken;
    for (std::size_t i = 0; i < blocks; ++i) taken.push_back(cpu_allocator::allocate(bytes));
    return taken;
  };
  const auto free_all = [](const std::vector<void*>& taken) {
    for (void* p : taken) cpu_allocator::free(p, bytes);
  };
  free_all(take_all());  // this thread lives on and keeps a bounded part
  std::size_t asked = cpu_allocator::stats().system_allocations;
  std::thread([&] { free_all(take_all()); }).join();
  CHECK(cpu_allocator::stats().system_allocations - asked < blocks / 4);
  cpu_allocator::empty_cache();
  std::thread([&] { free_all(take_all()); }).join();
  asked = cpu_allocator::stats().system_allocations;
  free_all(take_all());
  CHECK(cpu_allocator::stats().system_allocations == asked);
}

// A function of the address sanitizer's runtime; null in builds without the sanitizer. The test asks it, because the
// macros that tell sources of the sanitizer are what the test checks.
extern "C" __attribute__((weak)) int __asan_address_is_poisoned(const volatile void* address);

TEST_CASE("the address sanitizer sees accesses behind a block and to a block that was freed") {
  const bool watched = __asan_address_is_poisoned != nullptr;
  const auto forbidden = [&](const char* p) { return watched && __asan_address_is_poisoned(p) != 0; };
  for (const std::size_t bytes : {100u, 3000u, 100000u}) {
    CAPTURE(bytes);
    auto* const p = static_cast<char*>(cpu_allocator::allocate(bytes));
    const std::size_t end = (bytes + 7) / 8 * 8;  // the sanitizer knows units of 8 bytes
    CHECK(!forbidden(p));
    CHECK(!forbidden(p + bytes - 1));
    CHECK(forbidden(p + end) == watched);
    cpu_allocator::free(p, bytes);
    CHECK(forbidden(p + 16) == watched);
    CHECK(forbidden(p + bytes - 1) == watched);
  }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("if the system has no more memory, free blocks of other sizes are returned first") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    void* p = cpu_allocator::allocate(std::size_t{600} << 20);
    cpu_allocator::free(p, std::size_t{600} << 20);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t now = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
    const rlimit limit{now + (rlim_t{100} << 20), RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
    int status = 1;
    try {
      cpu_allocator::allocate(std::size_t{400} << 20);
      status = 0;
    } catch (const OutOfMemory&) {
    }
    _exit(status);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
#endif
