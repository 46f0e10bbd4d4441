#include "support/paths.h"

#include <cstdlib>

namespace levin::test {

std::filesystem::path source_dir() {
  const char* packed = std::getenv("LEVIN_SOURCE_DIR");  // the files of the tests in ./run silicon's package
  return packed ? packed : LEVIN_SOURCE_DIR;
}

std::filesystem::path binary_dir() { return LEVIN_BINARY_DIR; }

}  // namespace levin::test
