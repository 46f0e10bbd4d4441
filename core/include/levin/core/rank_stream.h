#pragma once
// How ranks divide one stream of random numbers.

#include <levin/core/generator.h>

namespace levin {

/// Rank r draws from offset r * kRankStride of the common seed's stream.
inline constexpr std::uint64_t kRankStride = std::uint64_t{1} << 48;

/// Moves the state to a rank's own part of the stream: ranks that resume from one state draw different numbers.
constexpr GeneratorState of_rank(GeneratorState s, int rank) {
  s.offset = s.offset % kRankStride + static_cast<std::uint64_t>(rank) * kRankStride;
  return s;
}

}  // namespace levin
