#pragma once
#include <cstddef>

namespace levin::test {

/// Returns the number of calls of operator new so far, by all threads.
std::size_t allocations();

}  // namespace levin::test
