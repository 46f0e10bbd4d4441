#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> norm_cases() { return {}; }

}  // namespace levin::test
