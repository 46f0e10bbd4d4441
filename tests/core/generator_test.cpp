#include <doctest/doctest.h>
#include <levin/core/device.h>
#include <levin/core/generator.h>
#include <levin/core/side_by_side.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <latch>
#include <map>
#include <set>
#include <thread>
#include <vector>

using namespace levin;

using Words = std::array<std::uint32_t, 4>;

namespace {

/// Runs f(0), f(1), ... on threads that start together.
template <class F>
void on_threads(int n, const F& f) {
  std::latch start(n);
  std::vector<std::jthread> threads;
  for (int i = 0; i < n; ++i) {
    threads.emplace_back([&, i] {
      start.arrive_and_wait();
      f(i);
    });
  }
}

}  // namespace

TEST_CASE("Philox4x32-10 gives Random123's known answers") {
  CHECK(philox(0, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(~0ull, ~0ull, ~0ull) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  // counter 243f6a88 85a308d3 13198a2e 03707344, key a4093822 299f31d0 (digits of pi)
  CHECK(philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a generator's state determines all its future numbers") {
  Generator a(5);
  a.next_u64();
  a.below(10);
  Generator b;
  b.set_state(a.state());
  for (int i = 0; i < 20; ++i) CHECK(a.next_u64() == b.next_u64());
  CHECK(a.state() == b.state());
  const GeneratorState before = a.reserve(100);
  CHECK(a.state().offset == before.offset + 100);
  a.manual_seed(5);
  CHECK(a.state() == GeneratorState{5, 0});
}

TEST_CASE("copies are independent; assignment and moves keep the position") {
  Generator a(5);
  a.next_u64();
  Generator b = a;
  b.next_u64();
  CHECK(a.state() == GeneratorState{5, 1});
  a = b;
  CHECK(a.state() == GeneratorState{5, 2});
  const Generator c = std::move(a);
  CHECK(c.state() == GeneratorState{5, 2});
  CHECK(b.reserve(3, Stream(kCpu)).offset == 2);  // the CPU has no graph capture
  CHECK(b.state().offset == 5);
}

TEST_CASE("uniform numbers stay in range and are uniformly distributed") {
  CHECK(uniform24(~0u) < 1.f);
  CHECK(uniform53(~0u, ~0u) < 1.0);
  CHECK(uniform24(0) == 0.f);
  Generator g(1);
  constexpr int n = 60000;
  std::array<int, 6> counts{};
  double sum = 0;
  for (int i = 0; i < n; ++i) {
    ++counts[g.below(6)];
    sum += g.uniform();
  }
  // Five standard deviations of a binomial and of a mean of uniforms.
  for (const int c : counts) CHECK(std::abs(c - n / 6) < 5 * std::sqrt(n * (1.0 / 6) * (5.0 / 6)));
  CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(1.0 / 12 / n));
  CHECK(g.below(1) == 0);
}

TEST_CASE("forks are independent streams") {
  const Generator g(9);
  std::set<std::uint64_t> seeds;
  for (std::uint64_t a = 0; a < 40; ++a) {
    for (std::uint64_t b = 0; b < 40; ++b) seeds.insert(g.fork(a, b).seed());
  }
  CHECK(seeds.size() == 1600);
  CHECK(g.fork(1, 2).seed() == Generator(9).fork(1, 2).seed());
  CHECK(g.fork(1, 2).seed() != Generator(10).fork(1, 2).seed());
}

TEST_CASE("manual_seed seeds the default generator of all threads") {
  const GeneratorState kept = default_generator().state();
  manual_seed(3);
  const auto first = default_generator().next_u64();
  manual_seed(3);
  CHECK(default_generator().next_u64() == first);
  default_generator().set_state(kept);
}

TEST_CASE("a thread may have its own default generator") {
  const GeneratorState kept = default_generator().state();
  Generator own(5), same(5);
  {
    const DefaultGeneratorGuard guard(own);
    CHECK(default_generator().next_u64() == same.next_u64());
    std::thread([&] { CHECK(default_generator().state() == kept); }).join();
    {
      Generator inner(6);
      const DefaultGeneratorGuard nested(inner);
      CHECK(default_generator().seed() == 6);
    }
    CHECK(default_generator().state() == same.state());
  }
  CHECK(default_generator().state() == kept);
}

TEST_CASE("threads that draw from one generator divide one stream between them") {
  constexpr int threads = 4;
  constexpr std::size_t each = 100'000, blocks = threads * each;
  // Repeats until the threads have overlapped often, because on a busy machine they may run one after the other.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  std::size_t turns = 0, wrong = 0;
  do {
    Generator shared(7);
    std::vector<GeneratorState> drawn[threads];
    on_threads(threads, [&](int t) {
      for (std::size_t i = 0; i < each; ++i) drawn[t].push_back(shared.reserve(1));
    });
    std::vector<int> owner(blocks, -1);
    for (int t = 0; t < threads; ++t) {
      for (const auto& [seed, offset] : drawn[t]) {
        wrong += seed != 7 || offset >= blocks || owner[offset] >= 0;
        if (offset < blocks) owner[offset] = t;
      }
    }
    for (std::size_t i = 1; i < blocks; ++i) turns += owner[i] != owner[i - 1];
    wrong += shared.state() != GeneratorState{7, blocks};
  } while (turns < 20'000 && wrong == 0 && std::chrono::steady_clock::now() < deadline);
  CHECK(wrong == 0);
}

TEST_CASE("a state set by another thread takes effect between two draws") {
  constexpr int threads = 3;
  constexpr std::size_t most = 500'000;
  Generator shared(0);
  std::atomic<bool> over{false};
  std::atomic<int> drawing{threads};
  std::vector<GeneratorState> drawn[threads];
  on_threads(threads + 1, [&](int t) {
    if (t < threads) {
      while (!over && drawn[t].size() < most) drawn[t].push_back(shared.reserve(2));
      --drawing;
      return;
    }
    for (std::uint64_t seed = 1; seed <= 2000 && drawing > 0; ++seed) {
      while (shared.state().offset < 20 && drawing > 0) std::this_thread::yield();
      shared.set_state({seed, 0});
    }
    over = true;
  });
  std::map<std::uint64_t, std::vector<std::uint64_t>> by_seed;
  for (const auto& d : drawn)
    for (const auto& [seed, offset] : d) by_seed[seed].push_back(offset);
  int wrong = 0;
  for (auto& [seed, offsets] : by_seed) {
    std::ranges::sort(offsets);
    for (std::size_t i = 0; i < offsets.size(); ++i) wrong += offsets[i] != 2 * i;
  }
  CHECK(wrong == 0);
}

TEST_CASE("threads may copy a generator that others draw from") {
  constexpr int times = 20'000;
  Generator shared(7);
  std::vector<std::uint64_t> seen;
  on_threads(3, [&](int t) {
    for (int i = 0; i < times; ++i) {
      if (t > 0) {
        shared.reserve(1);
        continue;
      }
      Generator copy = shared;
      const Generator moved = std::move(copy);
      seen.push_back(moved.state().offset);
    }
  });
  CHECK(std::ranges::is_sorted(seen));
  CHECK(shared.state() == GeneratorState{7, 2 * times});
}
