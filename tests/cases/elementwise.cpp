#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> elementwise_cases() { return {}; }

}  // namespace levin::test
