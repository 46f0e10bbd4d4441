#pragma once
#include <filesystem>

namespace levin::test {

/// The root of the source tree (for stored values and for tests that read the tree itself), or LEVIN_SOURCE_DIR of the
/// environment.
std::filesystem::path source_dir();

/// The build folder of the running program.
std::filesystem::path binary_dir();

}  // namespace levin::test
