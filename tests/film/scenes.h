#pragma once
// The kernels that can be filmed, with data for one block.

#include "emulator/film/film.h"

#include <filesystem>
#include <string>
#include <vector>

namespace levin::film {

/// Names such as "reduce/01_interleaved".
std::vector<std::string> scenes();

/// Runs and films a kernel. `root` is the root of the source tree. Throws std::invalid_argument for a name that is not
/// among scenes(), and std::runtime_error if the kernel's result is not the expected one (for block_sums without
/// barriers any result is).
emulator::film::Film shoot(const std::string& name, const std::filesystem::path& root);

}  // namespace levin::film
