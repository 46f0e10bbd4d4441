#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// The same seed and offset give the same numbers on every device and with any number of threads.

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

namespace levin {

class Stream;

/// Computes the four 32-bit words of block `counter` of stream `seed` by ten rounds of Philox.
constexpr std::array<std::uint32_t, 4> philox(std::uint64_t seed, std::uint64_t counter,
                                              std::uint64_t subsequence = 0) {
  std::uint32_t c0 = static_cast<std::uint32_t>(counter), c1 = static_cast<std::uint32_t>(counter >> 32);
  std::uint32_t c2 = static_cast<std::uint32_t>(subsequence), c3 = static_cast<std::uint32_t>(subsequence >> 32);
  std::uint32_t k0 = static_cast<std::uint32_t>(seed), k1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c0, p1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(p1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(p1);
    c2 = static_cast<std::uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(p0);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {c0, c1, c2, c3};
}

/// Returns a uniform number in [0, 1) with 24 random bits.
constexpr float uniform24(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }
/// Returns a uniform number in [0, 1) with 53 random bits.
constexpr double uniform53(std::uint32_t high, std::uint32_t low) {
  return static_cast<double>(((static_cast<std::uint64_t>(high) << 32) | low) >> 11) * 0x1p-53;
}

namespace detail {
__extension__ using u128 = unsigned __int128;

/// A lock for critical sections of a few instructions: a mutex costs twice as much as drawing one number.
class SpinLock {
 public:
  void lock() {
    if (held_.exchange(true, std::memory_order_acquire)) wait();
  }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  void wait();
  std::atomic<bool> held_{false};
};
}  // namespace detail

/// The state of a generator as a checkpoint stores it.
struct GeneratorState {
  std::uint64_t seed = 0;    ///< selects the Philox stream
  std::uint64_t offset = 0;  ///< number of the next counter, of four 32-bit words
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/// Position at which a kernel's random numbers begin: counter `offset` of stream `seed`. In captured work the position
/// is `offset` counters after the state that `base` holds in device memory at each replay.
struct PhiloxState {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  const GeneratorState* base = nullptr;  ///< its seed is used instead of `seed`
  constexpr PhiloxState() = default;
  /// Sets the fields `seed`, `offset` and `base`, or takes the first two from a state.
  constexpr PhiloxState(std::uint64_t s, std::uint64_t o, const GeneratorState* b = nullptr)
      : seed(s), offset(o), base(b) {}
  constexpr PhiloxState(const GeneratorState& s) : seed(s.seed), offset(s.offset) {}
  /// Returns seed and offset as they are now; for kernels of the CPU, which can read `base`.
  constexpr GeneratorState now() const {
    return base ? GeneratorState{base->seed, base->offset + offset} : GeneratorState{seed, offset};
  }
};

/// A position in one Philox stream. Operations reserve a range of counters and read them by element index.
/// Threads may share a generator: each call draws one contiguous block of the stream, and no block is drawn twice or
/// skipped, but which thread gets which block is not fixed. Setting the state or the seed takes effect between two
/// calls. A copy is independent of the original. Graphs that draw from a generator stay bound to the original, see the
/// state that is assigned to it, and may outlive it.
class Generator {
 public:
  /// Begins at offset 0 of the seed's stream.
  explicit Generator(std::uint64_t seed = 0) : own_{seed, 0} {}

  Generator(const Generator& other) : own_(other.state()) {}
  Generator(Generator&& other) noexcept;
  Generator& operator=(const Generator& other) {
    set_state(other.state());
    return *this;
  }

  /// Returns the seed alone, or seed and offset.
  std::uint64_t seed() const { return state().seed; }
  GeneratorState state() const;
  /// Continues from this state, as state() returned it.
  void set_state(const GeneratorState& s);
  /// Begins anew at offset 0 of the seed's stream.
  void manual_seed(std::uint64_t seed) { set_state({seed, 0}); }

  /// Reserves `blocks` counters (four 32-bit words each) and returns the state at the first of them.
  GeneratorState reserve(std::uint64_t blocks);
  /// Reserves counters for work on `stream`. While the stream is captured, none are taken now and every replay takes
  /// `blocks` of them. Throws DeviceError when the stream is captured by anything other than cuda::Graph.
  PhiloxState reserve(std::uint64_t blocks, const Stream& stream);
  /// Returns a random 64-bit number; uses one counter.
  std::uint64_t next_u64();
  /// Returns a uniform integer in [0, bound), without bias (Lemire 2019); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  /// Returns a uniform number in [0, 1).
  double uniform();
  /// Returns a generator of the independent stream (a, b), e.g. fork(epoch, index) for the augmentation of one sample.
  Generator fork(std::uint64_t a, std::uint64_t b = 0) const;

 private:
  std::shared_ptr<Generator> share();

  mutable detail::SpinLock lock_;  ///< protects the members below
  GeneratorState own_;
  std::shared_ptr<Generator> shared_;  ///< replaces own_ once a graph draws from this generator
};

/// Returns the generator that random operations use when none is given: that of a DefaultGeneratorGuard of the calling
/// thread, else the one of the process, whose seed is 67280421310721, as in PyTorch, until manual_seed sets another.
Generator& default_generator();
/// Seeds default_generator().
void manual_seed(std::uint64_t seed);

}  // namespace levin
