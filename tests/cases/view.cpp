#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> view_cases() { return {}; }

}  // namespace levin::test
