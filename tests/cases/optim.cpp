#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> optim_cases() { return {}; }

}  // namespace levin::test
