#pragma once
#include <cstddef>

namespace levin::test {

/// Returns the size of the largest single operator new since forget_allocations(), in bytes.
std::size_t largest_allocation();
void forget_allocations();

}  // namespace levin::test
