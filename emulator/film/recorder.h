#pragma once
// Records what each thread of a block does, in the thread's own order.

#include "emulator/film/film.h"

#include <levin/emulator/observer.h>

#include <map>
#include <utility>

namespace levin::emulator::film {

/// One thing that a thread has done.
struct Event {
  enum class Kind : std::uint8_t { block, read, write, barrier, warp_function, end };
  Kind kind = Kind::block;
  unsigned bytes = 0;        ///< of an access
  int place = 0;             ///< index in Recording::places
  std::uintptr_t address = 0;
  std::uint64_t bits = 0;    ///< read or written, if at most 8 bytes
  std::uint32_t mask = 0;    ///< of a warp function
};

/// The return addresses of the calls that lead to an event, the outermost first, and its own, or 0 if it has a site.
using Place = std::vector<std::uintptr_t>;

struct RecordedArray {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::string file;
  unsigned line = 0;
};

struct Recording {
  std::vector<std::vector<Event>> threads;
  std::vector<Place> places;
  std::map<int, std::pair<std::string, int>> sites;  ///< file and line of the places of barriers and warp functions
  std::vector<RecordedArray> arrays;
};

/// Runs the launch and records its block (0, 0, 0).
Recording record(const Launch& launch);

}  // namespace levin::emulator::film
