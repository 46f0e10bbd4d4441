#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> conv_cases() { return {}; }

}  // namespace levin::test
