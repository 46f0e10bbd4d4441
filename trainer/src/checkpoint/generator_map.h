#pragma once
// Generator state as plain values, for checkpoints.

#include <levin/core/rank_stream.h>
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

}  // namespace levin
