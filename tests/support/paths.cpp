#include "support/paths.h"

namespace levin::test {

std::filesystem::path source_dir() { return LEVIN_SOURCE_DIR; }

std::filesystem::path binary_dir() { return LEVIN_BINARY_DIR; }

}  // namespace levin::test
