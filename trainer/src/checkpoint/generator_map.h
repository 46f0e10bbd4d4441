#pragma once
// Generator state as plain values, for checkpoints.

#include <levin/core/generator.h>
#include <levin/core/state_map.h>

namespace levin {

inline StateMap to_map(const GeneratorState& s) {
  StateMap m;
  m.set("seed", static_cast<std::int64_t>(s.seed));
  m.set("offset", static_cast<std::int64_t>(s.offset));
  return m;
}

inline GeneratorState generator_state(const StateMap& m) {
  return {static_cast<std::uint64_t>(m.get<std::int64_t>("seed")),
          static_cast<std::uint64_t>(m.get<std::int64_t>("offset"))};
}

/// Moves the state to a rank's own part of the stream: ranks that resume from one state draw different numbers.
inline GeneratorState of_rank(GeneratorState s, int rank) {
  constexpr std::uint64_t offsets = (std::uint64_t{1} << 48) - 1;
  s.offset = (s.offset & offsets) | (static_cast<std::uint64_t>(rank) << 48);
  return s;
}

}  // namespace levin
