#include "cases/cases.h"

namespace levin::test {

std::vector<OpCase> indexing_cases() { return {}; }

}  // namespace levin::test
