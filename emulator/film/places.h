#pragma once
// Finds the lines of the source that recorded places belong to.

#include "emulator/film/recorder.h"

namespace levin::emulator::film {

struct Lines {
  std::vector<int> of_place;  ///< index in `lines`, or -1 if no frame of the place lies in a shown file
  std::vector<Line> lines;
};

/// The line of a place is that of its innermost call in one of the scene's sources.
Lines find_lines(const Recording& recording, const Scene& scene);

/// Names the recorded arrays by their declarations, LEVIN_SHARED(T, name, ...).
std::vector<Array> name_arrays(const Recording& recording, std::size_t columns);

}  // namespace levin::emulator::film
