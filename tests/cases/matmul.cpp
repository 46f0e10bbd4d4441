#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> matmul_cases() { return {}; }

}  // namespace levin::test
