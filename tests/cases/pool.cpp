#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> pool_cases() { return {}; }

}  // namespace levin::test
