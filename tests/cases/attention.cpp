#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> attention_cases() { return {}; }

}  // namespace levin::test
