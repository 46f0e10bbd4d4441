#pragma once
// Random views and in-place operations.

#include "fuzz/cases.h"

namespace levin::fuzz {

/// Runs a random sequence of views and edits through them, then backward from the result, and compares with an oracle
/// that tracks for each element of memory its value and its derivatives by the elements of the leaf. All numbers are
/// small integers, so both must be equal.
std::string run_edits(Draw& d, const std::function<void(const std::string&)>& show);

}  // namespace levin::fuzz
