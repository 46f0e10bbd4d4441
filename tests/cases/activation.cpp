#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> activation_cases() { return {}; }

}  // namespace levin::test
