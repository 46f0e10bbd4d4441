#pragma once
#include <cstddef>

namespace levin::test {

/// The greatest number of bytes that any single operator new was asked for since forget_allocations().
std::size_t largest_allocation();
void forget_allocations();

}  // namespace levin::test
