#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> creation_cases() { return {}; }

}  // namespace levin::test
