#include "support/small_cases.h"

#include <cstdlib>
#include <string_view>

namespace levin::test {

bool small_cases() {
  const char* const text = std::getenv("LEVIN_SMALL_CASES");
  return text && std::string_view(text) == "1";
}

}  // namespace levin::test
