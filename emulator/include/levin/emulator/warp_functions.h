#pragma once
// Shuffles, votes, matches and reductions of a warp, with CUDA's names. The last lane of the mask to arrive computes
// the results of all.

#include <levin/emulator/execution.h>

#include <bit>
#include <cstdint>
#include <type_traits>

void __syncwarp(unsigned mask = 0xffffffffu, levin::emulator::Site site = levin::emulator::Site::current());
inline unsigned __activemask() { return levin::emulator::live_lanes(); }

namespace levin::emulator {

enum class Shuffle { index, up, down, exclusive_or };

template <class T>
struct ShuffleOperand {
  T value, result;
  int argument, width;
  Site site;
};

/// Returns the lane that `lane` reads from: itself if the source lies outside of its segment.
constexpr int shuffle_source(Shuffle kind, int lane, int argument, int width) {
  const int first = lane & ~(width - 1), last = first + width - 1;
  int source = lane;
  switch (kind) {
    case Shuffle::index:
      return first + (argument & (width - 1));
    case Shuffle::up:
      source = lane - argument;
      break;
    case Shuffle::down:
      source = lane + argument;
      break;
    case Shuffle::exclusive_or:
      source = lane ^ argument;
      return source > last ? lane : source;
  }
  return source < first || source > last ? lane : source;
}

template <class T, Shuffle kind>
void shuffle_lanes(void* const* operands, std::uint32_t) {
  for (int lane = 0; lane < 32; ++lane) {
    auto* own = static_cast<ShuffleOperand<T>*>(operands[lane]);
    if (!own) continue;
    const int source = shuffle_source(kind, lane, own->argument, own->width);
    const auto* other = static_cast<const ShuffleOperand<T>*>(operands[source]);
    if (!other) {
      fail("shuffle: lane " + std::to_string(lane) + " reads lane " + std::to_string(source) +
               ", which is not in the mask",
           own->site);
    }
    own->result = other->value;
  }
}

template <Shuffle kind, class T>
T shuffle(const char* name, unsigned mask, T value, int argument, int width, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8, "shuffles move 4 or 8 bytes");
  ShuffleOperand<T> operand{value, value, argument, width, site};
  warp_collective(name, mask, &operand, &shuffle_lanes<T, kind>, site);
  return operand.result;
}

/// A lane's input and result of a vote or a reduction.
struct VoteOperand {
  std::uint64_t value, result;
};

std::uint64_t vote(const char* name, unsigned mask, std::uint64_t value, WarpFunction run, Site site);
void any_lanes(void* const* operands, std::uint32_t mask);
void all_lanes(void* const* operands, std::uint32_t mask);
void ballot_lanes(void* const* operands, std::uint32_t mask);
void match_any_lanes(void* const* operands, std::uint32_t mask);
void match_all_lanes(void* const* operands, std::uint32_t mask);

/// Reduces the lanes' values, as type T, with F.
template <class T, class F>
void fold_lanes(void* const* operands, std::uint32_t mask) {
  bool begun = false;
  T result{};
  for (int lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1)) continue;
    const T value = static_cast<T>(static_cast<VoteOperand*>(operands[lane])->value);
    result = begun ? F{}(result, value) : value;
    begun = true;
  }
  for (int lane = 0; lane < 32; ++lane) {
    if (mask >> lane & 1) static_cast<VoteOperand*>(operands[lane])->result = static_cast<std::uint64_t>(result);
  }
}

template <class T>
std::uint64_t bits_of(T value) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t bits = 0;
  __builtin_memcpy(&bits, &value, sizeof value);
  return bits;
}

}  // namespace levin::emulator

#define LEVIN_EMULATOR_SHUFFLE(name, kind, argument_type)                                                           \
  template <class T>                                                                                                \
  inline T name(unsigned mask, T value, argument_type argument, int width = 32,                                     \
                levin::emulator::Site site = levin::emulator::Site::current()) {                                    \
    return levin::emulator::shuffle<levin::emulator::Shuffle::kind>(#name, mask, value, static_cast<int>(argument), \
                                                                    width, site);                                   \
  }
LEVIN_EMULATOR_SHUFFLE(__shfl_sync, index, int)
LEVIN_EMULATOR_SHUFFLE(__shfl_up_sync, up, unsigned)
LEVIN_EMULATOR_SHUFFLE(__shfl_down_sync, down, unsigned)
LEVIN_EMULATOR_SHUFFLE(__shfl_xor_sync, exclusive_or, int)
#undef LEVIN_EMULATOR_SHUFFLE

inline int __any_sync(unsigned mask, int predicate, levin::emulator::Site site = levin::emulator::Site::current()) {
  return static_cast<int>(levin::emulator::vote("__any_sync", mask, predicate != 0, levin::emulator::any_lanes, site));
}
inline int __all_sync(unsigned mask, int predicate, levin::emulator::Site site = levin::emulator::Site::current()) {
  return static_cast<int>(levin::emulator::vote("__all_sync", mask, predicate != 0, levin::emulator::all_lanes, site));
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              levin::emulator::Site site = levin::emulator::Site::current()) {
  return static_cast<unsigned>(
      levin::emulator::vote("__ballot_sync", mask, predicate != 0, levin::emulator::ballot_lanes, site));
}
template <class T>
inline unsigned __match_any_sync(unsigned mask, T value,
                                 levin::emulator::Site site = levin::emulator::Site::current()) {
  return static_cast<unsigned>(levin::emulator::vote("__match_any_sync", mask, levin::emulator::bits_of(value),
                                                     levin::emulator::match_any_lanes, site));
}
template <class T>
inline unsigned __match_all_sync(unsigned mask, T value, int* all,
                                 levin::emulator::Site site = levin::emulator::Site::current()) {
  const auto lanes = static_cast<unsigned>(levin::emulator::vote(
      "__match_all_sync", mask, levin::emulator::bits_of(value), levin::emulator::match_all_lanes, site));
  *all = lanes != 0;
  return lanes;
}

#define LEVIN_EMULATOR_REDUCE(name, T, F)                                                                \
  inline T name(unsigned mask, T value, levin::emulator::Site site = levin::emulator::Site::current()) { \
    return static_cast<T>(levin::emulator::vote(#name, mask, static_cast<std::uint64_t>(value),          \
                                                levin::emulator::fold_lanes<T, F>, site));               \
  }
namespace levin::emulator {
struct Smaller {
  template <class T>
  T operator()(T a, T b) const {
    return b < a ? b : a;
  }
};
struct Larger {
  template <class T>
  T operator()(T a, T b) const {
    return a < b ? b : a;
  }
};
struct Sum {
  unsigned operator()(unsigned a, unsigned b) const { return a + b; }
  int operator()(int a, int b) const { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
};
struct BitAnd {
  unsigned operator()(unsigned a, unsigned b) const { return a & b; }
};
struct BitOr {
  unsigned operator()(unsigned a, unsigned b) const { return a | b; }
};
struct BitXor {
  unsigned operator()(unsigned a, unsigned b) const { return a ^ b; }
};
}  // namespace levin::emulator
LEVIN_EMULATOR_REDUCE(__reduce_add_sync, unsigned, levin::emulator::Sum)
LEVIN_EMULATOR_REDUCE(__reduce_add_sync, int, levin::emulator::Sum)
LEVIN_EMULATOR_REDUCE(__reduce_min_sync, unsigned, levin::emulator::Smaller)
LEVIN_EMULATOR_REDUCE(__reduce_min_sync, int, levin::emulator::Smaller)
LEVIN_EMULATOR_REDUCE(__reduce_max_sync, unsigned, levin::emulator::Larger)
LEVIN_EMULATOR_REDUCE(__reduce_max_sync, int, levin::emulator::Larger)
LEVIN_EMULATOR_REDUCE(__reduce_and_sync, unsigned, levin::emulator::BitAnd)
LEVIN_EMULATOR_REDUCE(__reduce_or_sync, unsigned, levin::emulator::BitOr)
LEVIN_EMULATOR_REDUCE(__reduce_xor_sync, unsigned, levin::emulator::BitXor)
#undef LEVIN_EMULATOR_REDUCE
