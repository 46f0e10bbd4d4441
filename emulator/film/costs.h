#pragma once
// The cost of accesses on a GPU.

#include "emulator/film/film.h"

#include <map>
#include <utility>

namespace levin::emulator::film {

/// Sets cost and least of an access of the lanes in `active`. A bank gives one word of 4 bytes in a pass, to any number
/// of lanes. Accesses of 8 and 16 bytes go through shared memory by half and quarter warps. Source: CUDA C++
/// Programming Guide, "Compute Capabilities", shared memory and global memory.
void find_cost(Access& access, std::uint32_t active);

/// Finds accesses of different threads to one word of shared memory between two barriers, one of which is a write.
/// Functions of a warp order the accesses of its own lanes.
class Races {
 public:
  /// Tells of accesses by the lanes of a warp in one step; fills access.races.
  void add(Access& access, std::uint32_t active, int warp);
  void pass_barrier() { words_.clear(); }
  void pass_warp_function(int warp) { ++intervals_[warp]; }

 private:
  struct Use {
    int thread, warp, interval;
    bool write;
  };
  std::map<std::pair<std::size_t, std::uint32_t>, std::vector<Use>> words_;  ///< by array and word
  std::map<int, int> intervals_;
};

}  // namespace levin::emulator::film
