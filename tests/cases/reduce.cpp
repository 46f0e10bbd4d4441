#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> reduce_cases() { return {}; }

}  // namespace levin::test
